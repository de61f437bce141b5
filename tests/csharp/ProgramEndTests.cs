using System;
using System.Diagnostics;
using System.IO;
using NUnit.Framework;

/// <summary>A program may end at any moment, with everything open.</summary>
[TestFixture]
public class ProgramEndTests {
  private static readonly bool isMono = Type.GetType("Mono.Runtime") != null;

  [TestCase("open")]
  [TestCase("run")]
  [TestCase("fill")]
  [TestCase("exit")]
  [TestCase("collect")]
  public void AProgramMayEndWithEverythingOpen(string how) {
    string folder = Path.Combine(Environment.GetEnvironmentVariable("ST_BUILD_TREE"), "csharp_tests"), program = Path.Combine(folder, "EndsOpen.exe");
    string command = isMono ? "mono" : Environment.GetEnvironmentVariable("ST_DOTNET");
    string options = isMono ? "" : "exec --runtimeconfig " + Path.Combine(folder, "net8.runtimeconfig.json") + " ";
    for (int round = 0; round < 5; ++round) {
      var start = new ProcessStartInfo(command, options + program + " " + how) { RedirectStandardOutput = true, RedirectStandardError = true, UseShellExecute = false };
      using (Process process = Process.Start(start)) {
        string printed = process.StandardOutput.ReadToEnd(), said = process.StandardError.ReadToEnd();
        Assert.IsTrue(process.WaitForExit(60000), "it does not end");
        Assert.AreEqual("0 end\n", process.ExitCode + " " + printed + said);
      }
    }
  }
}
