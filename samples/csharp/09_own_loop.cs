// A custom training loop: a two-layer net with hand-written forward and backward, over the program's own arrays. The library scales the loss,
// clips, schedules and updates. In one step the gradients overflow, and that step is skipped. Prints the same numbers as 09_own_loop.c.
// Build: mcs -r:ScaleTrain.dll 09_own_loop.cs
using System.Linq;
using System;
using System.Globalization;
using ScaleTrain;

static class OwnLoop {
  const int Rows = 64, Hidden = 32;
  static uint state = 1;

  // A random number in [-1, 1).
  static float Uniform() {
    state = unchecked(state * 1664525 + 1013904223);
    return (float)(state >> 8) / (1 << 23) - 1;
  }

  // y = v . tanh(w x + b) and its gradients.
  sealed class Net {
    readonly float[] w = new float[Hidden], b = new float[Hidden], v = new float[Hidden], h = new float[Hidden];
    internal readonly float[] Dw = new float[Hidden], Db = new float[Hidden], Dv = new float[Hidden];

    internal Net() {
      for (int j = 0; j < Hidden; ++j) {
        w[j] = 2 * Uniform();
        b[j] = Uniform();
        v[j] = 0.1f * Uniform();
      }
    }

    internal Batch Parameters { get { return new Batch { { "w", w }, { "b", b }, { "v", v } }; } }
    internal View[] Gradients { get { return new View[] { Dw, Db, Dv }; } }

    // Returns the mean squared error against sin(3 x), and computes scale times its gradients.
    internal double ForwardBackward(double scale) {
      double loss = 0;
      foreach (float[] gradient in new[] { Dw, Db, Dv }) Array.Clear(gradient, 0, Hidden);
      for (int i = 0; i < Rows; ++i) {
        float x = Uniform(), y = 0;
        for (int j = 0; j < Hidden; ++j) y += v[j] * (h[j] = (float)Math.Tanh(w[j] * x + b[j]));
        float error = y - (float)Math.Sin(3 * x);
        loss += error * error / Rows;
        var dy = (float)(scale * 2 * error / Rows);
        for (int j = 0; j < Hidden; ++j) {
          float dh = dy * v[j] * (1 - h[j] * h[j]);
          Dv[j] += dy * h[j];
          Dw[j] += dh * x;
          Db[j] += dh;
        }
      }
      return loss;
    }
  }

  static int Main(string[] arguments) {
    string device = arguments.Contains("--device") ? arguments.Last() : "cpu";  // --device NAME at the end
    var culture = (CultureInfo)CultureInfo.InvariantCulture.Clone();
    culture.NumberFormat.PositiveInfinitySymbol = "inf";
    CultureInfo.CurrentCulture = culture;
    var net = new Net();
    View[] gradients = net.Gradients;
    var groups = new[] { new { pattern = "b", weight_decay_scale = 0 } };
    using (var context = new Context(new ContextOptions { Device = device }))
    using (var scaler = new LossScaler(context))
    using (var schedule = new Schedule(new { schedule = "cosine", lr = 0.02, warmup = 20, lr_steps = 600 }))
    using (var optimizer = new Optimizer(context, net.Parameters, new { optimizer = "adamw", groups })) {
      double first = 0, loss = 0;
      int updates = 0, skips = 0;
      for (int step = 1; step <= 600; ++step) {
        double scale = scaler.Scale;
        loss = net.ForwardBackward(scale);
        if (step == 300) net.Dw[7] = float.PositiveInfinity;  // simulates an overflow of 16-bit gradients
        scaler.Unscale(gradients);
        double norm = context.ClipNorm(1, gradients);
        if (scaler.Step()) {
          optimizer.Set("lr", schedule.At(updates++));
          optimizer.Step(gradients);
        }
        if (scaler.Update()) ++skips;
        if (step == 1) first = loss;
        if (step == 1 || step % 150 == 0) Console.WriteLine($"step {step,3}  loss {loss:F4}  norm {norm:F3}  scale {scale:F0}");
      }
      Console.WriteLine($"{skips} of 600 steps was skipped");
      return loss <= 0.02 * first && skips == 1 && updates == 599 ? 0 : 1;
    }
  }
}
