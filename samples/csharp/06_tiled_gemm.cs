// Why the tile matters: one product with tiles of several sizes, compared with a plain triple loop.
// Build: mcs -r:ScaleTrain.dll 06_tiled_gemm.cs
using System.Linq;
using System;
using System.Diagnostics;
using System.Globalization;
using ScaleTrain;

static class TiledGemm {
  const int Size = 384;
  static readonly float[,] A = new float[Size, Size], B = new float[Size, Size], C = new float[Size, Size];
  static readonly double[,] Plain = new double[Size, Size];
  static uint state = 1;

  static void SomeNumbers(float[,] x) {
    for (int i = 0; i < Size; ++i)
      for (int j = 0; j < Size; ++j) x[i, j] = (float)((state = unchecked(state * 1664525 + 1013904223)) >> 8) / (1 << 23) - 1;
  }

  // Computes the product by its definition. Returns the speed in flop/s.
  static double MultiplyPlainly() {
    Stopwatch clock = Stopwatch.StartNew();
    for (int i = 0; i < Size; ++i)
      for (int k = 0; k < Size; ++k)
        for (int j = 0; j < Size; ++j) Plain[i, j] += (double)A[i, k] * B[k, j];
    return 2.0 * Size * Size * Size / clock.Elapsed.TotalSeconds;
  }

  static double LargestDifference() {
    double largest = 0;
    for (int i = 0; i < Size; ++i)
      for (int j = 0; j < Size; ++j) largest = Math.Max(largest, Math.Abs(C[i, j] - Plain[i, j]));
    return largest;
  }

  static int Main(string[] arguments) {
    string device = arguments.Contains("--device") ? arguments.Last() : "cpu";  // --device NAME at the end
    CultureInfo.CurrentCulture = CultureInfo.InvariantCulture;
    SomeNumbers(A);
    SomeNumbers(B);
    Console.WriteLine($"{"plain loop",-22} {1e-9 * MultiplyPlainly(),8:F2} GFLOP/s");

    double worst = 0;
    int products = 0;
    using (var context = new Context(new ContextOptions { Device = device })) {
      foreach (int tile in new[] { 8, 32, 64, 128, 384, 0 /* the library chooses */ }) {
        var wish = new GemmSchedule { TileM = tile, TileN = tile, TileK = tile, BlockM = tile, BlockN = tile };  // block = tile: packs one tile at a time
        if (device != "cpu") wish.TuneMilliseconds = 20;  // a device has rates of kernels that it has measured
        try {
          using (var gemm = new Gemm(context, new GemmProblem(Size, Size, Size), wish)) {
            double best = 0;  // of several runs, since the first finds cold caches
            for (int run = 0; run < 5; ++run) {
              gemm.Run(A, B, C);
              best = Math.Max(best, gemm.Info().FlopsPerSecond);
            }
            GemmInfo info = gemm.Info();
            double difference = LargestDifference();
            worst = Math.Max(worst, difference);
            ++products;
            string name = $"tile {info.TileM}x{info.TileN}x{info.TileK}{(tile == 0 ? ", chosen" : "")}";
            Console.WriteLine($"{name,-22} {1e-9 * best,8:F2} GFLOP/s  largest difference {difference:0.0e+00}  {(info.Adjusted ? "rounded" : "")}");
          }
        } catch (UnsupportedException error) {  // a device has few tiles
          Console.WriteLine($"tile {tile,-17} {error.Message}");
        }
      }
    }
    if (products == 0) Console.Error.WriteLine($"{device} has none of these tiles: nothing was multiplied");
    return products > 0 && worst < 1e-4 ? 0 : 1;  // rounding of fp32 sums of 384 products of numbers below 1
  }
}
