// Gradient accumulation: the gradient of 12 rows at once, and of the same rows as 4 micro-batches of 3. The rows have different numbers of
// tokens, so the mean of the four means is a different number. Prints the same numbers as 08_accumulate.c.
// Run: java -cp scaletrain.jar 08_accumulate.java

import java.nio.FloatBuffer;
import java.util.List;
import org.scaletrain.Accumulator;
import org.scaletrain.Array;
import org.scaletrain.Context;
import org.scaletrain.ContextOptions;
import org.scaletrain.DType;

class Accumulate {
  static final int ROWS = 12, MICRO_BATCH = 3, WIDTH = 8;
  static final int[] TOKENS = {9, 4, 7, 8, 8, 2, 5, 9, 6, 1, 3, 2};
  static final float[] w = new float[WIDTH];
  static final Array gradient = Array.allocate(DType.F32, WIDTH);
  static final FloatBuffer dw = gradient.floats();  // the same memory

  /** A number between -1 and 1 that depends only on i. */
  static float noise(int i) {
    return (float) ((i * 1664525 + 1013904223) * 22695477 >>> 8) / (1 << 23) - 1;
  }

  /** Sets dw to the gradient of the squared error of rows [begin, end), *summed* over tokens. Returns the number of tokens. */
  static int backward(int begin, int end) {
    int tokens = 0;
    float[] x = new float[WIDTH], sum = new float[WIDTH];
    for (int row = begin; row < end; ++row)
      for (int t = 0; t < TOKENS[row]; ++t, ++tokens) {
        float error = -noise(row + t);
        for (int j = 0; j < WIDTH; ++j) error += w[j] * (x[j] = noise(row * 1000 + t * 10 + j));
        for (int j = 0; j < WIDTH; ++j) sum[j] += 2 * error * x[j];
      }
    dw.put(0, sum);
    return tokens;
  }

  static void show(String what, float[] gradient) {
    System.out.printf("%-22s", what);
    for (int j = 0; j < 4; ++j) System.out.printf(" %9.6f", gradient[j]);
    System.out.println(" ...");
  }

  static double largestDifference(float[] a, float[] b) {
    double largest = 0;
    for (int j = 0; j < WIDTH; ++j) largest = Math.max(largest, Math.abs((double) a[j] - b[j]));
    return largest;
  }

  static boolean run(String device) {
    float[] means = new float[WIDTH];
    for (int j = 0; j < WIDTH; ++j) w[j] = 0.1f * (j - 3);
    try (Context context = new Context(new ContextOptions().device(device));
         Accumulator accumulator = new Accumulator(context, 1, gradient)) {  // writes to dw in place
      accumulator.add(backward(0, ROWS));
      boolean wholeStep = accumulator.shouldStep();
      float[] whole = gradient.toFloats();
      show("12 rows at once", whole);

      accumulator.setSteps(ROWS / MICRO_BATCH);
      for (int begin = 0; begin < ROWS; begin += MICRO_BATCH) {
        int count = backward(begin, begin + MICRO_BATCH);
        for (int j = 0; j < WIDTH; ++j) means[j] += dw.get(j) / count * MICRO_BATCH / ROWS;
        accumulator.add(count);  // the last add() writes the mean to dw
        wholeStep = accumulator.shouldStep();
        System.out.printf("  %2d tokens%s%n", count, wholeStep ? ", and now dw is for the optimizer" : "");
      }
      show("4 micro-batches of 3", gradient.toFloats());
      show("a mean of means", means);
      double apart = largestDifference(gradient.toFloats(), whole), wrong = largestDifference(means, whole);
      System.out.printf("over %.0f tokens: largest difference %.1e, of a mean of means %.1e%n", accumulator.weight(), apart, wrong);
      return wholeStep && accumulator.weight() == 64 && apart < 1e-6 && wrong > 1e-2;
    }
  }

  public static void main(String[] arguments) {
    String device = List.of(arguments).contains("--device") ? arguments[arguments.length - 1] : "cpu";  // --device NAME at the end
    System.exit(run(device) ? 0 : 1);
  }
}
