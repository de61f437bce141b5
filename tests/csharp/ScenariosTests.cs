using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.IO;
using System.Linq;
using NUnit.Framework;
using ScaleTrain;

/// <summary>The scenarios of tests/scenarios print what they print in C, to the last bit.</summary>
[TestFixture]
public class ScenariosTests {
  [Test]
  public void EveryLineIsThatOfC() {
    string file = Path.Combine(Nets.SourceTree, "tests", "scenarios", "scenarios.json");
    var here = new List<string>();
    using (var context = new Context())
      foreach (Dictionary<string, object> scenario in (List<object>)JsonText.Read(File.ReadAllText(file))) here.AddRange(LinesOf(context, scenario));
    Assert.Greater(here.Count, 50);
    Assert.AreEqual(LinesOfC(file), here);
  }

  private static string[] LinesOfC(string file) {
    var start = new ProcessStartInfo(Environment.GetEnvironmentVariable("ST_SCENARIOS_IN_C"), file) { RedirectStandardOutput = true, UseShellExecute = false };
    using (Process done = Process.Start(start)) {
      string printed = done.StandardOutput.ReadToEnd();
      done.WaitForExit();
      Assert.AreEqual(0, done.ExitCode);
      return printed.Split(new[] { '\n' }, StringSplitOptions.RemoveEmptyEntries);
    }
  }

  private static IEnumerable<string> LinesOf(Context context, Dictionary<string, object> scenario) {
    var name = (string)scenario["name"];
    using (Model model = Model.Builtin(context, (string)scenario["model"], (long)(double)scenario["seed"], scenario["options"]))
    using (var recipe = new Recipe(scenario["recipe"]))
    using (var trainer = new Trainer(model, recipe)) {
      uint state = 1;
      for (int step = 0; step < (double)scenario["steps"]; ++step) {
        var batch = new Batch();
        foreach (Dictionary<string, object> of in (List<object>)scenario["batch"]) batch.Add((string)of["name"], Drawn(of, ref state));
        StepReport report = trainer.Step(batch);
        yield return $"{name} {report.Step} {(report.Skipped ? 1 : 0)} {Bits(report.Loss)} {Bits(report.Lr)} {Bits(report.GradNorm)}";
      }
      yield return name + " " + trainer.Digest();
    }
  }

  private static View Drawn(Dictionary<string, object> of, ref uint state) {
    long[] dims = ((List<object>)of["dims"]).Select(dim => (long)(double)dim).ToArray();
    var drawn = new uint[dims.Aggregate((a, b) => a * b)];
    for (int i = 0; i < drawn.Length; ++i) drawn[i] = (state = unchecked(state * 1664525 + 1013904223)) >> 8;
    if ((string)of["dtype"] == "i32") return View.Of(drawn.Select(number => (int)(number % (uint)(double)of["below"])).ToArray(), dims);
    return View.Of(drawn.Select(number => (float)number / (1 << 23) - 1).ToArray(), dims);
  }

  private static string Bits(double number) { return BitConverter.DoubleToInt64Bits(number).ToString("x16"); }
}
