// Why the tile matters: one product with tiles of several sizes, compared with a plain triple loop.
// Run: java -cp scaletrain.jar 06_tiled_gemm.java

import java.nio.FloatBuffer;
import java.util.List;
import org.scaletrain.Array;
import org.scaletrain.Context;
import org.scaletrain.ContextOptions;
import org.scaletrain.DType;
import org.scaletrain.Gemm;
import org.scaletrain.GemmInfo;
import org.scaletrain.GemmProblem;
import org.scaletrain.GemmSchedule;
import org.scaletrain.Unsupported;

class TiledGemm {
  static final int SIZE = 384;
  static int state = 1;

  static Array someNumbers() {
    Array numbers = Array.allocate(DType.F32, SIZE, SIZE);
    for (FloatBuffer to = numbers.floats(); to.hasRemaining();) {
      state = state * 1664525 + 1013904223;
      to.put((float) (state >>> 8) / (1 << 23) - 1);
    }
    return numbers;
  }

  /** The product by its definition. */
  static double[] multiplyPlainly(float[] a, float[] b) {
    double[] c = new double[SIZE * SIZE];
    for (int i = 0; i < SIZE; ++i)
      for (int k = 0; k < SIZE; ++k)
        for (int j = 0; j < SIZE; ++j) c[i * SIZE + j] += (double) a[i * SIZE + k] * b[k * SIZE + j];
    return c;
  }

  static double largestDifference(FloatBuffer c, double[] plain) {
    double largest = 0;
    for (int i = 0; i < plain.length; ++i) largest = Math.max(largest, Math.abs(c.get(i) - plain[i]));
    return largest;
  }

  static boolean run(String device) {
    Array a = someNumbers(), b = someNumbers(), c = Array.allocate(DType.F32, SIZE, SIZE);
    long begin = System.nanoTime();
    double[] plain = multiplyPlainly(a.toFloats(), b.toFloats());
    System.out.printf("%-22s %8.2f GFLOP/s%n", "plain loop", 2.0 * SIZE * SIZE * SIZE / (System.nanoTime() - begin));

    double worst = 0;
    int products = 0;
    try (Context context = new Context(new ContextOptions().device(device))) {
      for (int tile : new int[] {8, 32, 64, 128, 384, 0 /* the library chooses */}) {
        GemmSchedule wish = new GemmSchedule().tile(tile, tile, tile).block(tile, tile);  // block = tile: packs one tile at a time
        if (!device.equals("cpu")) wish.tuneMs(20);  // a device has rates of kernels that it has measured
        try (Gemm gemm = new Gemm(context, new GemmProblem(SIZE, SIZE, SIZE), wish)) {
          double best = 0;  // of several runs, since the first finds cold caches
          for (int run = 0; run < 5; ++run) {
            gemm.run(a, b, c);
            best = Math.max(best, gemm.info().flopsPerSecond());
          }
          double difference = largestDifference(c.floats(), plain);
          worst = Math.max(worst, difference);
          ++products;
          GemmInfo info = gemm.info();
          String name = "tile " + info.tileM() + "x" + info.tileN() + "x" + info.tileK() + (tile == 0 ? ", chosen" : "");
          System.out.printf("%-22s %8.2f GFLOP/s  largest difference %.1e  %s%n", name, 1e-9 * best, difference, info.adjusted() ? "rounded" : "");
        } catch (Unsupported error) {  // a device has few tiles
          System.out.printf("tile %-17d %s%n", tile, error.getMessage());
        }
      }
    }
    if (products == 0) System.err.println(device + " has none of these tiles: nothing was multiplied");
    return products > 0 && worst < 1e-4;  // rounding of fp32 sums of 384 products of numbers below 1
  }

  public static void main(String[] arguments) {
    String device = List.of(arguments).contains("--device") ? arguments[arguments.length - 1] : "cpu";  // --device NAME at the end
    System.exit(run(device) ? 0 : 1);
  }
}
