package org.scaletrain;

/** A packed matrix B, for plans with the same packing. Created by {@link Gemm#pack}. */
public final class PackedMatrix extends Handle {
  final org.scaletrain.internal.PackedMatrix raw;

  PackedMatrix(org.scaletrain.internal.PackedMatrix raw, Object keeps) {
    this.raw = raw;
    raw.keeps = keeps;
  }

  /** Packs another B into the same memory. */
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
