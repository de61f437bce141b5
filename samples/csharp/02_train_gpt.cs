// Trains a small GPT on a text file, evaluates it on held-out text, generates text, and saves its weights. Prints the same numbers as
// 02_train_gpt.c. Usage: 02_train_gpt.exe TEXT [WEIGHTS.safetensors] [--device NAME]
// Build: mcs -r:ScaleTrain.dll 02_train_gpt.cs
using System;
using System.Globalization;
using System.Linq;
using ScaleTrain;

static class TrainGpt {
  static readonly object Options = new { layers = 2, width = 64, heads = 2, context = 32 };

  static bool Show(StepReport report) {
    if (report.Step % 20 == 0) Console.WriteLine($"step {report.Step,3}  loss {report.Loss:F3}");
    return true;  // false would end the run
  }

  // Tokens are bytes here.
  static void Write(Model model, string beginning) {
    Console.Write(beginning);
    using (var predictor = new Predictor(model)) {
      predictor.Generate(beginning.Select(letter => (int)letter).ToArray(), new GenerateOptions { Tokens = 60 }, token => {
        Console.Write(token >= 32 && token < 127 ? (char)token : ' ');
        return true;
      });
    }
    Console.WriteLine();
  }

  // Weights written to a file and read by another model are equal.
  static bool RoundTrip(Context context, Model model, string path) {
    const string name = "block.0.attention.qkv.weight";
    using (Model copy = Model.Builtin(context, "gpt", 2, Options)) {  // another seed: other weights until the file is read
      model.WriteFile(path);
      copy.ReadFile(path);
      bool equal = model.Get(name).SequenceEqual(copy.Get(name));
      Console.WriteLine($"weights in {path}: {(equal ? "read back, equal" : "DIFFERENT")}");
      return equal;
    }
  }

  static bool Run(string text, string weights, string device) {
    using (var context = new Context(new ContextOptions { Device = device }))
    using (Data data = Data.Files(context, text, new { context = 32 })) {
      data.Split(0.1, 0, out Data training, out Data validation);  // the last tenth of the text is held out
      using (training)
      using (validation)
      using (Model model = Model.Builtin(context, "gpt", 1, Options))
      using (var recipe = new Recipe { Batch = 16, Lr = 0.003 })
      using (var trainer = new Trainer(model, recipe, training)) {
        Evaluation before = trainer.Evaluate(validation);
        trainer.Run(100, Show);
        Evaluation after = trainer.Evaluate(validation);
        Console.WriteLine($"validation loss {before.Loss:F3}, then {after.Loss:F3} nats a byte");

        Write(model, "The ");
        return RoundTrip(context, model, weights) && after.Loss < before.Loss - 1;  // guessing costs 5.5 nats per byte
      }
    }
  }

  static int Main(string[] arguments) {
    string device = arguments.Contains("--device") ? arguments.Last() : "cpu";  // --device NAME at the end
    CultureInfo.CurrentCulture = CultureInfo.InvariantCulture;
    if (arguments.Length < 1) {
      Console.Error.WriteLine("usage: 02_train_gpt.exe TEXT [WEIGHTS.safetensors] [--device NAME]");
      return 2;
    }
    string weights = arguments.Length > 1 && !arguments[1].StartsWith("--") ? arguments[1] : "gpt.safetensors";
    return Run(arguments[0], weights, device) ? 0 : 1;
  }
}
