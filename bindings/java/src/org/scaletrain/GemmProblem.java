package org.scaletrain;

/** A product of A [m, k] and B [k, n] into C [m, n]. By default the matrices are f32, row-major, and there is one product. */
public final class GemmProblem {
  private final long m;
  private final long n;
  private final long k;
  private long batch = 1;
  private GemmLayout a = new GemmLayout(DType.F32);
  private GemmLayout b = new GemmLayout(DType.F32);
  private GemmLayout c = new GemmLayout(DType.F32);

  /** With these sizes. */
  public GemmProblem(long m, long n, long k) {
    this.m = m;
    this.n = n;
    this.k = k;
  }

  /** The number of products. */
  public GemmProblem batch(long batch) {
    this.batch = batch;
    return this;
  }

  /** The layout of A. */
  public GemmProblem a(GemmLayout layout) {
    a = Handle.given(layout, "GemmProblem.a");
    return this;
  }

  /** The layout of B. */
  public GemmProblem b(GemmLayout layout) {
    b = Handle.given(layout, "GemmProblem.b");
    return this;
  }

  /** The layout of C. */
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
