// A pipeline of the program's own stages: a model of four layers, with hand-written forward and backward, is cut into stages on ranks, here
// threads of this process. The library runs a schedule and sends activations and gradients. The weights have the same bits as with one
// stage. Prints the same numbers as 16_own_stages.c.
//   16_own_stages.exe [gpipe|1f1b|zb-h1|interleaved|zb-v]
// Build: mcs -r:ScaleTrain.dll 16_own_stages.cs
using System;
using System.Collections.Generic;
using System.Globalization;
using System.Linq;
using System.Text.RegularExpressions;
using System.Threading.Tasks;
using ScaleTrain;

static class OwnStages {
  const int LayerCount = 4, Width = 8, Rows = 8, Size = Rows * Width, MicroBatches = 8, All = MicroBatches * Size, Steps = 200;

  // Random numbers in [-1, 1), times scale.
  static float[] Uniform(uint state, int size, float scale) {
    return Enumerable.Range(0, size).Select(k => {
      state = unchecked(state * 1664525 + 1013904223);
      return scale * ((float)(state >> 8) / (1 << 23) - 1);
    }).ToArray();
  }

  // Each layer, y = tanh(x w), is a part. Only the rank of its stage uses its weights.
  sealed class Model {
    internal readonly float[] Weights = Uniform(1, LayerCount * Width * Width, 0.6f), Gradients = new float[LayerCount * Width * Width];
    internal readonly float[] Inputs = Uniform(2, All, 1), Targets;
    internal readonly float[][] Predictions = new float[MicroBatches][];

    internal Model() { Targets = Inputs.Select(x => 0.5f * (float)Math.Sin(3.0 * x)).ToArray(); }
  }

  // The stage of a rank: its layers.
  sealed class Layers {
    readonly Model model;
    readonly HashSet<int> parts = new HashSet<int>();
    internal readonly double[] Losses = new double[Steps];  // of the rank with the last part; 0 on the others
    internal double Bubble;
    int step;

    internal Layers(Model model) { this.model = model; }

    float[] X(StageWork work) {
      return work.Input == null ? model.Inputs.Skip(work.MicroBatch * Size).Take(Size).ToArray() : work.Input.ToArray<float>();
    }

    // The gradient of x w. The last part begins with the loss, the mean squared error.
    float[] Dz(StageWork work) {
      float[] y = work.Output == null ? model.Predictions[work.MicroBatch] : work.Output.ToArray<float>();
      float[] dz = work.OutputGradient == null ? new float[Size] : work.OutputGradient.ToArray<float>();
      for (int k = 0; k < Size; ++k) {
        if (work.OutputGradient == null) dz[k] = 2 * (y[k] - model.Targets[work.MicroBatch * Size + k]) / All;
        dz[k] *= 1 - y[k] * y[k];
      }
      return dz;
    }

    void Forward(StageWork work) {
      float[] x = X(work), w = model.Weights, y = new float[Size];
      int layer = work.Part * Width * Width;
      parts.Add(work.Part);
      for (int k = 0; k < Size; ++k) {
        float z = 0;
        for (int i = 0; i < Width; ++i) z += x[k / Width * Width + i] * w[layer + i * Width + k % Width];
        y[k] = (float)Math.Tanh(z);
        float error = y[k] - model.Targets[work.MicroBatch * Size + k];
        if (work.Output == null) Losses[step] += error * error / All;
      }
      if (work.Output == null) model.Predictions[work.MicroBatch] = y;
      else y.CopyTo(work.Output.Floats);
    }

    void BackwardInput(StageWork work) {
      if (work.InputGradient == null) return;
      float[] dz = Dz(work), w = model.Weights, dx = new float[Size];
      int layer = work.Part * Width * Width;
      for (int k = 0; k < Size; ++k)
        for (int j = 0; j < Width; ++j) dx[k] += dz[k / Width * Width + j] * w[layer + k % Width * Width + j];
      dx.CopyTo(work.InputGradient.Floats);
    }

    void BackwardWeight(StageWork work) {
      float[] x = X(work), dz = Dz(work);
      int layer = work.Part * Width * Width;
      for (int k = 0; k < Size; ++k)
        for (int i = 0; i < Width; ++i) model.Gradients[layer + i * Width + k % Width] += x[k / Width * Width + i] * dz[k];
    }

    // Gradient descent with a learning rate of 1.
    void Update() {
      foreach (int part in parts)
        for (int k = part * Width * Width; k < (part + 1) * Width * Width; ++k) {
          model.Weights[k] -= model.Gradients[k];
          model.Gradients[k] = 0;
        }
    }

    internal Layers Train(Communicator rank, string schedule, int chunks) {
      OpType[] types = Enumerable.Repeat(new OpType(DType.F32, Rows, Width), chunks).ToArray();
      using (var pipeline = new Pipeline(rank, schedule, types, types, Forward, BackwardInput, BackwardWeight)) {
        Bubble = double.Parse(Regex.Match(pipeline.Schedule(MicroBatches), "\"bubble\":([^,}]*)").Groups[1].Value);
        for (step = 0; step < Steps; ++step) {
          pipeline.Run(MicroBatches);
          Update();
        }
      }
      return this;
    }
  }

  static void Train(string device, Model model, string schedule, int stages) {
    using (var context = new Context(new ContextOptions { Device = device })) {
      Task<Layers>[] threads = Communicator.Local(context, stages).Select(rank => Task.Factory.StartNew(
          () => new Layers(model).Train(rank, schedule, LayerCount / stages), TaskCreationOptions.LongRunning)).ToArray();
      Layers last = threads.Select(thread => thread.Result).ToList().Single(stage => stage.Losses[0] > 0);
      string losses = string.Concat(new[] { 0, 49, 99, 149, 199 }.Select(step => $"  {last.Losses[step]:F4}"));
      Console.WriteLine($"{schedule,-11}  {stages} stage{(stages == 1 ? " " : "s")}  bubble {last.Bubble:F3}  loss{losses}");
    }
  }

  static int Main(string[] arguments) {
    string device = arguments.Contains("--device") ? arguments.Last() : "cpu";  // --device NAME at the end
    CultureInfo.DefaultThreadCurrentCulture = CultureInfo.CurrentCulture = CultureInfo.InvariantCulture;
    string schedule = arguments.Length > 0 && !arguments[0].StartsWith("--") ? arguments[0] : "1f1b";
    bool hasTwo = schedule == "interleaved" || schedule == "zb-v";  // parts a stage
    Model alone = new Model(), model = new Model();
    Train(device, alone, "interleaved", 1);  // all parts on one stage
    Train(device, model, schedule, hasTwo ? 2 : LayerCount);
    bool alike = alone.Weights.SequenceEqual(model.Weights);
    Console.WriteLine(alike ? "the weights have the same bits" : "the weights differ");
    return alike ? 0 : 1;
  }
}
