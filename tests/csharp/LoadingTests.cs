using System;
using System.Diagnostics;
using System.IO;
using System.Text;
using NUnit.Framework;

/// <summary>The first call throws if the native library is missing or has another version. Runs programs/FirstCall.cs in a separate folder.</summary>
[TestFixture]
public class LoadingTests {
  private const string Wrapper = "libscaletrain_csharp.so";
  private static readonly bool isMono = Type.GetType("Mono.Runtime") != null;
  private static readonly string tree = Environment.GetEnvironmentVariable("ST_BUILD_TREE"), programs = Path.Combine(tree, "csharp_tests");
  private string folder;

  [SetUp]
  public void Begin() {
    folder = Path.Combine(Path.GetTempPath(), "scaletrain-" + Guid.NewGuid().ToString("N"));
    Directory.CreateDirectory(folder);
    foreach (string file in new[] { "FirstCall.exe", "ScaleTrain.dll" }) File.Copy(Path.Combine(programs, file), Path.Combine(folder, file));
  }

  [TearDown] public void End() { Directory.Delete(folder, true); }

  [Test]
  public void AMissingLibraryIsNamedWithThePlacesAndTheWayOut() {
    string said = FirstCall();
    StringAssert.StartsWith("UnavailableException: " + Wrapper + " is missing. It was looked for as " + Path.Combine(folder, Wrapper) + ", ", said);
    StringAssert.Contains("SCALETRAIN_NATIVE", said);
  }

  [Test]
  public void TheFolderThatTheEnvironmentNamesIsTheFirst() { Assert.AreEqual("version 0.1.0", FirstCall("SCALETRAIN_NATIVE", Path.Combine(tree, "csharp"))); }

  [Test]
  public void AWrapperWithoutTheLibraryNamesTheLibrary() {
    byte[] bytes = File.ReadAllBytes(Path.Combine(tree, "csharp", Wrapper));
    Replace(bytes, "libscaletrain.so.0", "libscaletrain.so.9");  // a library that does not exist
    File.WriteAllBytes(Path.Combine(folder, Wrapper), bytes);
    StringAssert.IsMatch(@"^UnavailableException: .*/libscaletrain_csharp\.so exists but cannot be loaded: libscaletrain\.so\.9\S*: cannot open shared object file", FirstCall());
  }

  [Test]
  public void AFileThatIsNoLibraryIsRefused() {
    File.WriteAllText(Path.Combine(folder, Wrapper), "not a library");
    StringAssert.IsMatch(@"^UnavailableException: .*/libscaletrain_csharp\.so exists but cannot be loaded: .*", FirstCall());
  }

  [Test]
  public void AWrapperOfAnotherVersionIsRefused() {
    Compile("int some_function(void) { return 0; }", Path.Combine(folder, Wrapper), "-Wl,-soname," + Wrapper);
    StringAssert.StartsWith("UnavailableException: " + Wrapper + " has another version than ScaleTrain.dll", FirstCall());
  }

  [Test]
  public void ALibraryOfAnotherVersionIsRefused() {
    string other = Path.Combine(folder, "other.so");
    Compile("int st_require(int major, int minor) { return 7; } const char* st_last_error(void) { return \"this is version 7.3\"; }", other, "");
    Assert.AreEqual("UnsupportedException: this is version 7.3", FirstCall("SCALETRAIN_NATIVE", Path.Combine(tree, "csharp"), "LD_PRELOAD", other));
  }

  /// <summary>The output of FirstCall with these environment variables.</summary>
  private string FirstCall(params string[] variables) {
    string program = Path.Combine(folder, "FirstCall.exe");
    string options = isMono ? "" : "exec --runtimeconfig " + Path.Combine(programs, "net8.runtimeconfig.json") + " ";
    return Printed(isMono ? "mono" : Environment.GetEnvironmentVariable("ST_DOTNET"), options + program, variables);
  }

  private static void Compile(string source, string library, string options) {
    string file = library + ".c";
    File.WriteAllText(file, source);
    Assert.AreEqual("", Printed("cc", $"-shared -fPIC {options} -o {library} {file}"));
  }

  private static string Printed(string command, string arguments, params string[] variables) {
    var start = new ProcessStartInfo(command, arguments) { RedirectStandardOutput = true, UseShellExecute = false };
    foreach (string ours in new[] { "SCALETRAIN_NATIVE", "LD_LIBRARY_PATH", "LD_PRELOAD" }) start.EnvironmentVariables.Remove(ours);
    for (int i = 0; i < variables.Length; i += 2) start.EnvironmentVariables[variables[i]] = variables[i + 1];
    using (Process process = Process.Start(start)) {
      string printed = process.StandardOutput.ReadToEnd().Trim();
      Assert.True(process.WaitForExit(60000));
      return printed;
    }
  }

  private static void Replace(byte[] bytes, string old, string now) {
    byte[] sought = Encoding.ASCII.GetBytes(old), wanted = Encoding.ASCII.GetBytes(now);
    int at = bytes.AsSpan().IndexOf(sought);
    Assert.GreaterOrEqual(at, 0);
    for (; at >= 0; at = bytes.AsSpan().IndexOf(sought)) wanted.CopyTo(bytes, at);
  }
}
