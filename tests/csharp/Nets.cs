using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Threading;
using ScaleTrain;

/// <summary>Small trainings that the tests share.</summary>
static class Nets {
  internal const int Rows = 64;

  /// <summary>Whether to run the full sizes.</summary>
  internal static bool LongTrials { get { return Environment.GetEnvironmentVariable("ST_LONG_TRIALS") == "1"; } }

  internal static string SourceTree { get { return Environment.GetEnvironmentVariable("ST_SOURCE_TREE") ?? throw new InvalidOperationException("ST_SOURCE_TREE is not set: ctest sets it"); } }

  /// <summary>y = sin x as C# arrays.</summary>
  internal static Batch Sine() {
    float[] x = Enumerable.Range(0, Rows).Select(i => -3.0f + 6.0f * i / (Rows - 1)).ToArray();
    return new Batch { { "x", x, Rows, 1 }, { "y", x.Select(at => (float)Math.Sin(at)).ToArray(), Rows, 1 } };
  }

  internal static Model Net(Context context, long width = 8) { return Model.Builtin(context, "mlp", 1, new { hidden = new[] { width } }); }

  internal static Trainer Of(Context context, Data data = null) {
    using (var recipe = new Recipe { Batch = Rows, Lr = 0.01 })
      return new Trainer(Net(context), recipe, data);
  }

  internal static float[] Filled(int size, float value) { return Enumerable.Repeat(value, size).ToArray(); }

  /// <summary>Runs act on each rank, on a separate thread, and returns the results by rank. Rethrows an exception of a rank.</summary>
  internal static T[] OnEach<T>(Context context, int size, Func<Communicator, T> act) {
    var made = new T[size];
    var thrown = new Exception[size];
    IReadOnlyList<Communicator> ranks = Communicator.Local(context, size);
    Thread[] threads = ranks.Select((own, i) => new Thread(() => {
      try { made[i] = act(own); } catch (Exception problem) { thrown[i] = problem; }
    })).ToArray();
    foreach (Thread thread in threads) thread.Start();
    foreach (Thread thread in threads) thread.Join();
    foreach (Communicator own in ranks) own.Dispose();
    foreach (Exception problem in thrown)
      if (problem != null) throw new Exception(problem.ToString(), problem);
    return made;
  }

  internal static void OnEach(Context context, int size, Action<Communicator> act) {
    OnEach(context, size, own => {
      act(own);
      return true;
    });
  }

  internal static void Collect() {
    for (int i = 0; i < 3; ++i) {
      GC.Collect();
      GC.WaitForPendingFinalizers();
    }
  }

  /// <summary>Resident memory of this process in KB.</summary>
  internal static long ResidentKb() {
    foreach (string line in File.ReadAllLines("/proc/self/status"))
      if (line.StartsWith("VmRSS:")) return long.Parse(new string(line.Where(char.IsDigit).ToArray()));
    throw new InvalidDataException("/proc/self/status has no VmRSS");
  }
}
