using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.IO;
using System.Linq;
using System.Text.RegularExpressions;
using System.Xml;
using NUnit.Framework;

/// <summary>The NuGet package: its system requirements, and that the first sample runs with it outside the repository, on both runtimes.</summary>
[TestFixture]
public class NugetTests {
  private string folder;

  private static string BuildTree { get { return Environment.GetEnvironmentVariable("ST_BUILD_TREE"); } }

  [SetUp]
  public void Unpack() {
    folder = Path.Combine(Path.GetTempPath(), "scaletrain_nuget_" + Guid.NewGuid().ToString("N"));
    Ran("python3", "-m zipfile -e " + Directory.GetFiles(Path.Combine(BuildTree, "nuget"), "*.nupkg").Single() + " " + folder, Path.GetTempPath());
  }

  [TearDown] public void Forget() { Directory.Delete(folder, true); }

  /// <summary>The output of a program, which must succeed.</summary>
  private static string Ran(string program, string arguments, string where) {
    var start = new ProcessStartInfo(program, arguments) { RedirectStandardOutput = true, RedirectStandardError = true, UseShellExecute = false, WorkingDirectory = where };
    foreach (string name in new[] { "SCALETRAIN_NATIVE", "LD_LIBRARY_PATH", "MONO_PATH" }) start.EnvironmentVariables.Remove(name);
    using (Process process = Process.Start(start)) {
      string printed = process.StandardOutput.ReadToEnd(), said = process.StandardError.ReadToEnd();
      process.WaitForExit();
      Assert.AreEqual(0, process.ExitCode, program + " " + arguments + "\n" + printed + said);
      return printed;
    }
  }

  private string Native { get { return Path.Combine(folder, "runtimes", "linux-x64", "native"); } }

  [Test]
  public void ItsLayoutIsNugets() {
    string[] files = Directory.GetFiles(folder, "*", SearchOption.AllDirectories).Select(file => file.Substring(folder.Length + 1)).OrderBy(name => name, StringComparer.Ordinal).ToArray();
    var plugins = Directory.GetFiles(Path.Combine(BuildTree, "portable"), "*.so").Select(file => "runtimes/linux-x64/native/" + Path.GetFileName(file));
    Assert.AreEqual(new[] { "LICENSE", "ScaleTrain.nuspec", "THIRD_PARTY.md", "[Content_Types].xml", "_rels/.rels", "lib/netstandard2.1/ScaleTrain.dll", "lib/netstandard2.1/ScaleTrain.xml",
                            "runtimes/linux-x64/native/libscaletrain.so.0.1", "runtimes/linux-x64/native/libscaletrain_csharp.so" }.Concat(plugins).ToArray(), files);
    foreach (string name in new[] { "ScaleTrain.nuspec", "[Content_Types].xml", "_rels/.rels" }) new XmlDocument().Load(Path.Combine(folder, name));
  }

  [Test]
  public void ItNeedsGlibc228AndNoRuntimeOfCxx() {
    var ofTheSystem = new HashSet<string> { "libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "libgcc_s.so.1", "ld-linux-x86-64.so.2", "librt.so.1", "libscaletrain.so.0.1" };
    foreach (string file in Directory.GetFiles(Native)) {
      string needed = Ran("nm", "-D --undefined-only " + file, folder);
      Version[] versions = Regex.Matches(needed, @"@GLIBC_([0-9.]+)").Cast<Match>().Select(found => new Version(found.Groups[1].Value)).ToArray();
      Assert.IsNotEmpty(versions);
      Assert.LessOrEqual(versions.Max(), new Version(2, 28), file);
      Assert.IsFalse(Regex.IsMatch(needed, "GLIBCXX|CXXABI"), file);
      string[] libraries = Regex.Matches(Ran("readelf", "-d " + file, folder), @"NEEDED.*\[(.*)\]").Cast<Match>().Select(found => found.Groups[1].Value).ToArray();
      Assert.IsEmpty(libraries.Where(name => !ofTheSystem.Contains(name)).ToArray(), file);
      string[] defined = Regex.Matches(Ran("nm", "-D --defined-only " + file, folder), @" [TDBRVW] (\w+)").Cast<Match>().Select(found => found.Groups[1].Value).ToArray();
      Assert.IsEmpty(defined.Where(name => !name.StartsWith("st_") && !name.StartsWith("CSharp_ScaleTrain")).ToArray(), file);
    }
  }

  /// <summary>A program's folder as `dotnet build` creates it: the assembly next to the program, native libraries under runtimes.</summary>
  private string Program() {
    string program = Path.Combine(folder, "program");
    Directory.CreateDirectory(program);
    string assembly = Path.Combine(program, "ScaleTrain.dll");
    File.Copy(Path.Combine(folder, "lib", "netstandard2.1", "ScaleTrain.dll"), assembly);
    string source = Path.Combine(Environment.GetEnvironmentVariable("ST_SOURCE_TREE"), "samples", "csharp", "01_first_step.cs");
    Ran("mcs", "-nologo -langversion:latest -r:ScaleTrain.dll -r:System.Core.dll -out:first.exe " + source, program);
    return program;
  }

  private static void Copy(string from, string to) {
    Directory.CreateDirectory(to);
    foreach (string file in Directory.GetFiles(from)) File.Copy(file, Path.Combine(to, Path.GetFileName(file)));
  }

  [TestCase("runtimes/linux-x64/native", "mono")]
  [TestCase("runtimes/linux-x64/native", "net8")]
  [TestCase(".", "mono")]
  [TestCase(".", "net8")]
  public void ItTrainsOutsideTheRepository(string native, string runtime) {
    string program = Program();
    Copy(Native, Path.GetFullPath(Path.Combine(program, native)));
    string printed = runtime == "mono" ? Ran("mono", "first.exe", program) : OnNet8(program);
    Assert.AreEqual(Ran(Path.Combine(BuildTree, "samples", "01_first_step"), "", folder), printed);
    StringAssert.EndsWith("it learned the sine\n", printed);
  }

  private static string OnNet8(string program) {
    string config = Path.Combine(BuildTree, "csharp_tests", "net8.runtimeconfig.json");
    return Ran(Environment.GetEnvironmentVariable("ST_DOTNET"), "exec --runtimeconfig " + config + " first.exe", program);
  }

  [Test]
  public void ItsAssemblyRefersToTheBaseLibraryAlone() {
    var names = typeof(ScaleTrain.Context).Assembly.GetReferencedAssemblies().Select(one => one.Name).OrderBy(name => name).ToArray();
    Assert.AreEqual(new[] { "System", "System.Core", "mscorlib" }.OrderBy(name => name).ToArray(), names);
  }
}
