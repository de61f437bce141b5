// Predicts while training: a task trains a net on y = sin x while this thread predicts the same value repeatedly. Each prediction uses the
// weights of one finished step, taken by Predictor.Refresh. No thread waits for another. Prints the same numbers as 04_predict_while_training.c.
// Build: mcs -r:ScaleTrain.dll 04_predict_while_training.cs
using System;
using System.Globalization;
using System.Linq;
using System.Threading.Tasks;
using ScaleTrain;

static class PredictWhileTraining {
  const int Rows = 64, Rounds = 4, Steps = 150;

  static Batch Sine() {
    float[] x = Enumerable.Range(0, Rows).Select(i => -3.0f + 6.0f * i / (Rows - 1)).ToArray();
    float[] y = x.Select(at => (float)Math.Sin(at)).ToArray();
    return new Batch { { "x", x, Rows, 1 }, { "y", y, Rows, 1 } };
  }

  // Runs a forward pass of one row. May be called from any thread at any time.
  static float Ask(Predictor predictor, float x) {
    var answer = new float[1, 1];
    predictor.Run(new Batch { { "x", new[,] { { x } } } }, new Batch { { "prediction", answer } });
    return answer[0, 0];
  }

  static async Task<bool> Learn(string device) {
    Batch batch = Sine();
    using (var context = new Context(new ContextOptions { Device = device }))
    using (Model model = Model.Builtin(context, "mlp", 1, new { hidden = new[] { 32 } }))
    using (var recipe = new Recipe { Batch = 64, Lr = 0.01, WeightDecay = 0 })
    using (var trainer = new Trainer(model, recipe))
    using (var predictor = new Predictor(model)) {  // has a snapshot of the weights, 4 bytes per parameter
      bool steady = true;
      float answer = Ask(predictor, 1.5f);
      for (int round = 1; round <= Rounds; ++round) {
        Task training = Task.Run(() => {
          for (int step = 0; step < Steps; ++step) trainer.Step(batch);
        });
        for (int i = 0; i < 200; ++i) steady &= Ask(predictor, 1.5f) == answer;  // the snapshot does not change
        await training;       // rethrows an exception of the training
        predictor.Refresh();  // also allowed during a step: takes the weights of the newest finished one
        answer = Ask(predictor, 1.5f);
        Console.WriteLine($"after {round * Steps,3} steps  sin 1.5 is about {answer:F3}");
      }
      return Math.Abs(answer - Math.Sin(1.5)) < 0.05 && steady;
    }
  }

  static int Main(string[] arguments) {
    string device = arguments.Contains("--device") ? arguments.Last() : "cpu";  // --device NAME at the end
    CultureInfo.DefaultThreadCurrentCulture = CultureInfo.CurrentCulture = CultureInfo.InvariantCulture;
    bool learned = Learn(device).GetAwaiter().GetResult();
    Console.WriteLine(learned ? "it answered while it learned" : "it did not");
    return learned ? 0 : 1;
  }
}
