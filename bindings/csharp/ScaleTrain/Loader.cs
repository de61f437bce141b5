using System;
using System.Collections.Generic;
using System.IO;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;

namespace ScaleTrain {

/// <summary>Finds the native library, before the first call: beside the assembly, in a NuGet folder's <c>runtimes/linux-x64/native</c>, or where
/// the runtime looks.</summary>
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
      dlerror();  // found now: the runtime's looking for it later would forget the error
      LastProblem();  // compiled and bound by the runtime now: later, that would end what dlopen has to say
      foreach (string folder in Folders()) {
        string path = Path.GetFullPath(Path.Combine(folder, File));
        if (tried.Contains(path)) continue;
        tried.Add(path);
        if (System.IO.File.Exists(path) && dlopen(Utf8.Of(path), Now) == IntPtr.Zero)
          throw new UnavailableException(path + " is there and cannot be loaded: " + LastProblem()) { File = path };
      }
      try {
        Bridge.Begin();
        Native.native.require_as_compiled();
      } catch (DllNotFoundException missing) {
        throw new UnavailableException(File + " is missing. It was looked for as " + string.Join(", ", tried) + ", and where the runtime looks (" + missing.Message.TrimEnd() +
                                       "). The NuGet package carries it in runtimes/linux-x64/native, a build in its folder csharp; put it, with libscaletrain.so beside it, next to ScaleTrain.dll, " +
                                       "or name its folder in SCALETRAIN_NATIVE or LD_LIBRARY_PATH") { File = File };
      } catch (EntryPointNotFoundException other) {
        throw new UnavailableException(File + " is of another version than ScaleTrain.dll: " + other.Message) { File = File };
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
