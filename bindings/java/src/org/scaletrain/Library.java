package org.scaletrain;

import org.scaletrain.internal.Native;
import org.scaletrain.internal.NativeLibrary;

/** Queries about the library itself. */
public final class Library {
  private Library() {}

  /** The version of the loaded library. */
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

  /** JSON with the version, devices, transports, why a device or transport is missing, instruction sets, cores, memory and ops. */
  @OfC("st_features")
  public static String features() {
    NativeLibrary.require();
    return Native.features();
  }

  /** Number of library objects that have not been released. */
  @OfC("st_live_handles")
  public static long liveHandles() {
    NativeLibrary.require();
    return Native.live_handles();
  }

  /** The same for one kind: {@code "context"}, {@code "graph"}, {@code "model"}, {@code "trainer"}, ... */
  public static long liveHandles(String kind) {
    NativeLibrary.require();
    return Native.live_handles_of(kind);
  }
}
