using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.IO;
using System.Linq;
using NUnit.Framework;
using ScaleTrain;

/// <summary>The scenarios of tests/scenarios print the same output as in C, bit for bit.</summary>
[TestFixture]
public class ScenariosTests {
  [Test]
  public void EveryLineIsThatOfC() {
    string file = Path.Combine(Nets.SourceTree, "tests", "scenarios", "scenarios.txt");
    var here = new List<string>();
    using (var context = new Context())
      foreach (string scenario in File.ReadAllText(file).Split(new[] { "\n\n" }, StringSplitOptions.None)) here.AddRange(LinesOf(context, scenario.Trim().Split('\n')));
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

  private static IEnumerable<string> LinesOf(Context context, string[] lines) {
    string name = lines[0];
    string[] model = lines[1].Split(' ');
    var numbers = new Numbers();
    using (Model made = Model.Builtin(context, model[0], long.Parse(model[1]), lines[2]))
    using (var recipe = new Recipe(lines[3]))
    using (Data data = model.Length > 3 ? Data.Arrays(context, numbers.Next(lines)) : null)
    using (var trainer = new Trainer(made, recipe, data)) {
      long steps = long.Parse(model[2]);
      if (data != null) foreach (string line in LinesOfRun(context, name, trainer, data, steps)) yield return line;
      for (int step = 0; data == null && step < steps; ++step) yield return LineOf(name, trainer.Step(numbers.Next(lines)));
      yield return name + " " + trainer.Digest();
    }
  }

  private static List<string> LinesOfRun(Context context, string name, Trainer trainer, Data data, long steps) {
    var lines = new List<string>();
    bool hasResumed = false;
    string folder = Path.Combine(Path.GetTempPath(), "scaletrain-scenario-" + Guid.NewGuid());
    using (var checkpoint = new Checkpoint(context, folder))
      trainer.Run(steps, report => {
        lines.Add(LineOf(name, report));
        if (report.Step == 2) lines.Add(LineOf(name, trainer.Step()));
        if (report.Step == 4) lines.Add(name + " evaluation " + Bits(trainer.Evaluate(data).Loss));
        if (report.Step == 5) trainer.Save(checkpoint);
        if (report.Step == 7 && !hasResumed) {
          hasResumed = true;
          trainer.Resume(checkpoint);
        }
        if (report.Step == 8) {
          Assert.Throws<BusyException>(() => trainer.Run(9));
          lines.Add(name + " busy");
        }
        return true;
      });
    Directory.Delete(folder, true);
    return lines;
  }

  private static string LineOf(string name, StepReport report) {
    return $"{name} {report.Step} {(report.Skipped ? 1 : 0)} {Bits(report.Loss)} {Bits(report.Lr)} {Bits(report.GradNorm)}";
  }

  /// <summary>Generates the same numbers as the runners in other languages.</summary>
  private sealed class Numbers {
    private uint state = 1;

    internal Batch Next(string[] lines) {
      var batch = new Batch();
      foreach (string[] array in lines.Skip(4).Select(line => line.Split(' '))) batch.Add(array[0], Drawn(array, ref state));
      return batch;
    }
  }

  private static View Drawn(string[] array, ref uint state) {
    long[] dims = array.Skip(2).Select(long.Parse).ToArray();
    var drawn = new uint[dims.Aggregate((a, b) => a * b)];
    for (int i = 0; i < drawn.Length; ++i) drawn[i] = (state = unchecked(state * 1664525 + 1013904223)) >> 8;
    if (array[1] == "i32") return View.Of(drawn.Select(number => (int)(number % 50)).ToArray(), dims);
    return View.Of(drawn.Select(number => (float)number / (1 << 23) - 1).ToArray(), dims);
  }

  private static string Bits(double number) { return BitConverter.DoubleToInt64Bits(number).ToString("x16"); }
}
