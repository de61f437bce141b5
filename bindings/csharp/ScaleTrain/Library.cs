using ScaleTrain.Native;

namespace ScaleTrain {

/// <summary>The native library itself.</summary>
public static class Library {
  /// <summary>Of the library that was loaded.</summary>
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

  /// <summary>JSON: version, devices and transports between ranks and why one is missing, instruction sets, cores, memory, ops.</summary>
  [OfC("st_features")]
  public static string Features() {
    Loader.Require();
    return native.features();
  }

  /// <summary>Objects of the library's that are not given back: of one kind ("trainer"), or all.</summary>
  [OfC("st_live_handles")]
  public static long LiveHandles(string kind = null) {
    Loader.Require();
    return kind == null ? native.live_handles() : native.live_handles_of(kind);
  }
}

}
