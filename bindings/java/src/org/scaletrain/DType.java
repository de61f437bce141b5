package org.scaletrain;

import java.util.Locale;

/** What an array's elements are. */
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

  /** Of one element. */
  public int bytes() {
    return bytes;
  }

  /** As the library's messages have it: {@code f32}. */
  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT);
  }

  /** That of {@code view.h}. */
  int number() {
    return number;
  }

  static DType of(int number) {
    if (number < 1 || number > ALL.length)
      throw new Unsupported("the library has a dtype " + number + " that this version of its Java package does not know");
    return ALL[number - 1];
  }
}
