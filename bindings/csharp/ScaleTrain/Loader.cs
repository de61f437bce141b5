using System;
using System.Collections.Generic;
using System.IO;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;

namespace ScaleTrain {

/// <summary>Loads the native library before the first call. It looks next to the assembly, in <c>runtimes/linux-x64/native</c> of a NuGet folder, and
/// where the runtime looks.</summary>
internal static class Loader {
  internal const string File = "libscaletrain_csharp.so";
  private const int Now = 2;
  private static readonly object gate = new object();
  private static volatile bool isReady;

  internal static void Require() {
    if (!isReady) Load();
  }

  private static void Load() {
    lock (gate) {
      if (isReady) return;
      var tried = new List<string>();
      dlerror();  // binds the function now: binding it later would clear the error of dlopen
      LastProblem();  // compiled now for the same reason
      foreach (string folder in Folders()) {
        string path = Path.GetFullPath(Path.Combine(folder, File));
        if (tried.Contains(path)) continue;
        tried.Add(path);
        if (System.IO.File.Exists(path) && dlopen(Utf8.Of(path), Now) == IntPtr.Zero)
          throw new UnavailableException(path + " exists but cannot be loaded: " + LastProblem()) { File = path };
      }
      try {
        Bridge.Begin();
        Native.native.require_as_compiled();
      } catch (DllNotFoundException missing) {
        throw new UnavailableException(File + " is missing. It was looked for as " + string.Join(", ", tried) + ", and where the runtime looks (" + missing.Message.TrimEnd() +
                                       "). The NuGet package has it in runtimes/linux-x64/native, a build tree in its folder csharp. Put it and libscaletrain.so next to ScaleTrain.dll, " +
                                       "or set SCALETRAIN_NATIVE or LD_LIBRARY_PATH to its folder") { File = File };
      } catch (EntryPointNotFoundException other) {
        throw new UnavailableException(File + " has another version than ScaleTrain.dll: " + other.Message) { File = File };
      }
      isReady = true;
    }
  }

  [MethodImpl(MethodImplOptions.NoInlining)]
  private static string LastProblem() { return Utf8.From(dlerror()); }

  private static IEnumerable<string> Folders() {
    string named = Environment.GetEnvironmentVariable("SCALETRAIN_NATIVE");
    if (!string.IsNullOrEmpty(named)) yield return named;
    string native = Path.Combine("runtimes", "linux-x64", "native"), place = typeof(Loader).Assembly.Location;
    foreach (string folder in new[] { string.IsNullOrEmpty(place) ? null : Path.GetDirectoryName(place), AppDomain.CurrentDomain.BaseDirectory }) {
      if (string.IsNullOrEmpty(folder)) continue;
      yield return folder;
      yield return Path.Combine(folder, native);
      yield return Path.Combine(folder, "..", "..", native);
    }
  }

  [DllImport("libdl.so.2")] private static extern IntPtr dlopen(byte[] path, int flags);
  [DllImport("libdl.so.2")] private static extern IntPtr dlerror();
}

}
