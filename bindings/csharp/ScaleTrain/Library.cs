using ScaleTrain.Native;

namespace ScaleTrain {

/// <summary>Queries about the native library.</summary>
public static class Library {
  /// <summary>The version of the loaded library.</summary>
  [OfC("st_version")]
  public static string Version {
    get {
      Loader.Require();
      return native.version();
    }
  }

  /// <summary>Throws <see cref="UnsupportedException"/> when the library cannot serve a program written for major.minor.</summary>
  [OfC("st_require")]
  public static void Require(int major, int minor) {
    Loader.Require();
    native.require(major, minor);
  }

  /// <summary>JSON with the version, devices, transports, why a device or transport is missing, instruction sets, cores, memory and ops.</summary>
  [OfC("st_features")]
  public static string Features() {
    Loader.Require();
    return native.features();
  }

  /// <summary>Number of library objects that have not been released, of one kind ("trainer") or of all kinds.</summary>
  [OfC("st_live_handles")]
  public static long LiveHandles(string kind = null) {
    Loader.Require();
    return kind == null ? native.live_handles() : native.live_handles_of(kind);
  }
}

}
