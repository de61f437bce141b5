package org.scaletrain;

/** A plan for the product C = alpha A B + beta C over the program's arrays. Create it once and run it often. */
public final class Gemm extends Handle {
  private static final Epilogue NONE = new Epilogue();

  private final org.scaletrain.internal.Gemm raw;

  /** With a schedule that the library chooses. */
  public Gemm(Context context, GemmProblem problem) {
    this(context, problem, new GemmSchedule());
  }

  /** With a requested schedule. */
  @OfC("st_gemm_plan_create")
  public Gemm(Context context, GemmProblem problem, GemmSchedule wish) {
    raw = new org.scaletrain.internal.Gemm(given(context, "Gemm").raw, problem.raw(), wish.raw());
    raw.keeps = context.raw;
  }

  /** C = A B. */
  public void run(Array a, Array b, Array c) {
    run(1, a, b, 0, c, NONE);
  }

  /** C = alpha A B + beta C, then the epilogue. With beta 0, C is not read. */
  @OfC("st_gemm_run")
  public void run(float alpha, Array a, Array b, float beta, Array c, Epilogue then) {
    raw.multiply(alpha, a, b, beta, c, then.activation.ordinal(), then.bias, then.preActivation, then.derivativeAt, then.residual,
        then.columnSums);
  }

  /** C = A B. */
  public void run(Array a, PackedMatrix b, Array c) {
    run(1, a, b, 0, c, NONE);
  }

  /** C = alpha A B + beta C, then the epilogue. With beta 0, C is not read. */
  @OfC("st_gemm_run_packed")
  public void run(float alpha, Array a, PackedMatrix b, float beta, Array c, Epilogue then) {
    raw.multiply_packed(alpha, a, given(b, "Gemm.run: b").raw, beta, c, then.activation.ordinal(), then.bias, then.preActivation,
        then.derivativeAt, then.residual, then.columnSums);
  }

  /** Packs B once for many runs. */
  @OfC("st_gemm_pack")
  public PackedMatrix pack(Array b) {
    return new PackedMatrix(raw.pack(b), raw);
  }

  /** The chosen schedule, and the speed of the last run. */
  @OfC("st_gemm_plan_info")
  public GemmInfo info() {
    var of = raw.info();
    return new GemmInfo(of.getAdjusted(), of.getTile_m(), of.getTile_n(), of.getTile_k(), of.getBlock_m(), of.getBlock_n(),
        of.getMicro_m(), of.getMicro_n(), GemmOrder.of(of.getOrder()), GemmPacking.of(of.getPacking()), of.getThreads(),
        of.getInstruction_set(), of.getScratch_bytes(), of.getPacked_bytes(), of.getFlops_per_second(),
        of.getPredicted_flops_per_second(), GemmSource.of(of.getSource()), of.getLibrary());
  }

  @Override
  @OfC("st_gemm_plan_destroy")
  public void close() {
    raw.close();
  }
}
