package org.scaletrain;

/** A product: A [m, k], B [k, n], C [m, n]; without more, one of f32 matrices. */
public final class GemmProblem {
  private final long m;
  private final long n;
  private final long k;
  private long batch = 1;
  private GemmLayout a = new GemmLayout(DType.F32);
  private GemmLayout b = new GemmLayout(DType.F32);
  private GemmLayout c = new GemmLayout(DType.F32);

  /** Of these sizes. */
  public GemmProblem(long m, long n, long k) {
    this.m = m;
    this.n = n;
    this.k = k;
  }

  /** So many products. */
  public GemmProblem batch(long batch) {
    this.batch = batch;
    return this;
  }

  /** How A lies. */
  public GemmProblem a(GemmLayout layout) {
    a = Handle.given(layout, "GemmProblem.a");
    return this;
  }

  /** How B lies. */
  public GemmProblem b(GemmLayout layout) {
    b = Handle.given(layout, "GemmProblem.b");
    return this;
  }

  /** How C lies. */
  public GemmProblem c(GemmLayout layout) {
    c = Handle.given(layout, "GemmProblem.c");
    return this;
  }

  org.scaletrain.internal.GemmProblem raw() {
    org.scaletrain.internal.NativeLibrary.require();
    var raw = new org.scaletrain.internal.GemmProblem();
    raw.setM(m);
    raw.setN(n);
    raw.setK(k);
    raw.setBatch(batch);
    raw.setA(a.raw());
    raw.setB(b.raw());
    raw.setC(c.raw());
    return raw;
  }
}
