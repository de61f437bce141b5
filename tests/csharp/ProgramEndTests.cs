using System;
using System.Diagnostics;
using System.IO;
using NUnit.Framework;

/// <summary>Starts programs on the tests' own runtime. A program may end at any moment with all objects open, and no call with any arguments does more
/// than throw.</summary>
[TestFixture]
public class ProgramEndTests {
  private static readonly bool isMono = Type.GetType("Mono.Runtime") != null;

  private static void EndsWell(string program, string arguments) {
    string folder = Path.Combine(Environment.GetEnvironmentVariable("ST_BUILD_TREE"), "csharp_tests");
    string command = isMono ? "mono" : Environment.GetEnvironmentVariable("ST_DOTNET");
    string options = isMono ? "" : "exec --runtimeconfig " + Path.Combine(folder, "net8.runtimeconfig.json") + " ";
    var start = new ProcessStartInfo(command, options + Path.Combine(folder, program) + " " + arguments) { RedirectStandardOutput = true, RedirectStandardError = true, UseShellExecute = false };
    using (Process process = Process.Start(start)) {
      string printed = process.StandardOutput.ReadToEnd(), said = process.StandardError.ReadToEnd();
      Assert.IsTrue(process.WaitForExit(60000), "it does not end");
      Assert.AreEqual("0 end\n", process.ExitCode + " " + printed + said);
    }
  }

  [TestCase("open")]
  [TestCase("run")]
  [TestCase("thread")]
  [TestCase("fill")]
  [TestCase("exit")]
  [TestCase("collect")]
  public void AProgramMayEndWithEverythingOpen(string how) {
    for (int round = 0; round < 2; ++round) EndsWell("EndsOpen.exe", how);
  }

  [TestCase(1)]
  [TestCase(2)]
  public void NoCallIsOddEnoughToCrash(int seed) { EndsWell("OddCalls.exe", seed + " 6000"); }
}
