package org.scaletrain;

/** B, laid out for the plans that pack alike. Made by {@link Gemm#pack}. */
public final class PackedMatrix extends Handle {
  final org.scaletrain.internal.PackedMatrix raw;

  PackedMatrix(org.scaletrain.internal.PackedMatrix raw, Object keeps) {
    this.raw = raw;
    raw.keeps = keeps;
  }

  /** Another B, in place. */
  @OfC("st_gemm_repack")
  public void repack(Array b) {
    raw.repack(b);
  }

  @Override
  @OfC("st_packed_destroy")
  public void close() {
    raw.close();
  }
}
