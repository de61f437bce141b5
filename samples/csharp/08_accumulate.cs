// Gradient accumulation: the gradient of 12 rows at once, and of the same rows as 4 micro-batches of 3. The rows have different numbers of
// tokens, so the mean of the four means is a different number. Prints the same numbers as 08_accumulate.c.
// Build: mcs -r:ScaleTrain.dll 08_accumulate.cs
using System;
using System.Globalization;
using System.Linq;
using ScaleTrain;

static class Accumulate {
  const int Rows = 12, MicroBatch = 3, Width = 8;
  static readonly int[] Tokens = { 9, 4, 7, 8, 8, 2, 5, 9, 6, 1, 3, 2 };
  static readonly float[] W = Enumerable.Range(0, Width).Select(j => 0.1f * (j - 3)).ToArray(), Dw = new float[Width];

  // A number between -1 and 1 that depends only on i.
  static float Noise(int i) { return (float)(unchecked(((uint)i * 1664525 + 1013904223) * 22695477) >> 8) / (1 << 23) - 1; }

  // Sets Dw to the gradient of the squared error of rows [begin, end), *summed* over tokens. Returns the number of tokens.
  static int Backward(int begin, int end) {
    int tokens = 0;
    var x = new float[Width];
    Array.Clear(Dw, 0, Width);
    for (int row = begin; row < end; ++row)
      for (int t = 0; t < Tokens[row]; ++t, ++tokens) {
        float error = -Noise(row + t);
        for (int j = 0; j < Width; ++j) error += W[j] * (x[j] = Noise(row * 1000 + t * 10 + j));
        for (int j = 0; j < Width; ++j) Dw[j] += 2 * error * x[j];
      }
    return tokens;
  }

  static void Show(string what, float[] gradient) {
    Console.WriteLine($"{what,-22}" + string.Concat(gradient.Take(4).Select(value => $" {(double)value,9:F6}")) + " ...");
  }

  static double LargestDifference(float[] a, float[] b) { return a.Zip(b, (one, other) => Math.Abs((double)one - other)).Max(); }

  static int Main(string[] arguments) {
    string device = arguments.Contains("--device") ? arguments.Last() : "cpu";  // --device NAME at the end
    CultureInfo.CurrentCulture = CultureInfo.InvariantCulture;
    using (var context = new Context(new ContextOptions { Device = device }))
    using (var accumulator = new Accumulator(context, 1, Dw)) {  // writes to Dw in place
      accumulator.Add(Backward(0, Rows));
      bool wholeStep = accumulator.ShouldStep();
      var whole = (float[])Dw.Clone();
      Show("12 rows at once", whole);

      var means = new float[Width];
      accumulator.SetSteps(Rows / MicroBatch);
      for (int begin = 0; begin < Rows; begin += MicroBatch) {
        int count = Backward(begin, begin + MicroBatch);
        for (int j = 0; j < Width; ++j) means[j] += Dw[j] / count * MicroBatch / Rows;
        accumulator.Add(count);  // the last Add writes the mean to Dw
        wholeStep = accumulator.ShouldStep();
        Console.WriteLine($"  {count,2} tokens{(wholeStep ? ", and now dw is for the optimizer" : "")}");
      }
      Show("4 micro-batches of 3", Dw);
      Show("a mean of means", means);
      double apart = LargestDifference(Dw, whole), wrong = LargestDifference(means, whole);
      Console.WriteLine($"over {accumulator.Weight:F0} tokens: largest difference {apart:0.0e+00}, of a mean of means {wrong:0.0e+00}");
      return wholeStep && accumulator.Weight == 64 && apart < 1e-6 && wrong > 1e-2 ? 0 : 1;
    }
  }
}
