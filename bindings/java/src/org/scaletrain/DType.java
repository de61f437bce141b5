package org.scaletrain;

import java.util.Locale;

/** The type of an array's elements. */
public enum DType {
  /** {@code float}. */
  F32(1, 4),
  /** {@code double}. */
  F64(2, 8),
  /** The upper half of a {@code float}, as a {@code short} of its bits. */
  BF16(3, 2),
  /** IEEE half precision, as a {@code short} of its bits. */
  F16(4, 2),
  /** {@code int}. */
  I32(5, 4),
  /** {@code long}. */
  I64(6, 8),
  /** A byte, 0 to 255. */
  U8(7, 1),
  /** A byte, 0 or 1. */
  BOOL(8, 1);

  private static final DType[] ALL = values();

  private final int number;
  private final int bytes;

  DType(int number, int bytes) {
    this.number = number;
    this.bytes = bytes;
  }

  /** Bytes of one element. */
  public int bytes() {
    return bytes;
  }

  /** The name that the library's messages use, for example {@code f32}. */
  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT);
  }

  /** The number in {@code view.h}. */
  int number() {
    return number;
  }

  static DType of(int number) {
    if (number < 1 || number > ALL.length)
      throw new Unsupported("dtype " + number + " of the library is unknown to this version of the Java package; update the package");
    return ALL[number - 1];
  }
}
