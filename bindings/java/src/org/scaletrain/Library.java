package org.scaletrain;

import org.scaletrain.internal.Native;
import org.scaletrain.internal.NativeLibrary;

/** The library itself. */
public final class Library {
  private Library() {}

  /** Of the library that was loaded. */
  @OfC("st_version")
  public static String version() {
    NativeLibrary.require();
    return Native.version();
  }

  /** Throws {@link Unsupported} when the library cannot serve a program written for major.minor. */
  @OfC("st_require")
  public static void require(int major, int minor) {
    NativeLibrary.require();
    Native.require(major, minor);
  }

  /** As JSON: version, devices and transports between ranks and why one is missing, instruction sets, cores, memory, ops. */
  @OfC("st_features")
  public static String features() {
    NativeLibrary.require();
    return Native.features();
  }

  /** Objects of the library that are not given back. */
  @OfC("st_live_handles")
  public static long liveHandles() {
    NativeLibrary.require();
    return Native.live_handles();
  }

  /** Those of one kind: {@code "context"}, {@code "graph"}, {@code "model"}, {@code "trainer"}, ... */
  public static long liveHandles(String kind) {
    NativeLibrary.require();
    return Native.live_handles_of(kind);
  }
}
