// The cost of a call from Java, in microseconds: medians over rounds, and the middle half of the rounds.
// java -cp build/release/java/scaletrain.jar tests/bench/java_calls.java [ROUNDS]

import java.util.Arrays;
import java.util.Map;
import org.scaletrain.Array;
import org.scaletrain.Batch;
import org.scaletrain.Context;
import org.scaletrain.ContextOptions;
import org.scaletrain.DType;
import org.scaletrain.Gemm;
import org.scaletrain.GemmProblem;
import org.scaletrain.LossScaler;
import org.scaletrain.Model;
import org.scaletrain.Optimizer;
import org.scaletrain.Predictor;
import org.scaletrain.Schedule;

class JavaCalls {
  static final int CALLS = 20_000;

  static void measure(String name, int rounds, Runnable call) {
    for (int i = 0; i < 5 * CALLS; ++i) call.run();  // until the JIT has compiled it
    double[] means = new double[rounds];
    for (int round = 0; round < rounds; ++round) {
      long begin = System.nanoTime();
      for (int i = 0; i < CALLS; ++i) call.run();
      means[round] = (System.nanoTime() - begin) / 1e3 / CALLS;
    }
    Arrays.sort(means);
    System.out.printf("%-36s %7.3f  (%.3f to %.3f)%n", name, means[rounds / 2], means[rounds / 4], means[3 * rounds / 4]);
  }

  static double sink;

  public static void main(String[] arguments) {
    int rounds = arguments.length > 0 ? Integer.parseInt(arguments[0]) : 15;
    Context context = new Context(new ContextOptions().threads(1));
    LossScaler scaler = new LossScaler(context);
    Schedule schedule = new Schedule(Map.of("schedule", "cosine", "lr_steps", 1000));
    Array a = Array.allocate(DType.F32, 4, 4), c = Array.allocate(DType.F32, 4, 4), w = Array.allocate(DType.F32, 4, 4);
    Array heap = Array.of(new float[16], 4, 4);
    Gemm gemm = new Gemm(context, new GemmProblem(4, 4, 4));
    Optimizer optimizer = new Optimizer(context, Batch.of("w", w), Map.of("optimizer", "sgd"));
    Predictor predictor = new Predictor(Model.builtin(context, "mlp", Map.of("hidden", new long[] {8}), 1));
    Batch in = Batch.of("x", Array.allocate(DType.F32, 1, 1)), out = Batch.of("prediction", Array.allocate(DType.F32, 1, 1));
    measure("lossScaler.scale", rounds, () -> sink += scaler.scale());
    measure("schedule.at(7)", rounds, () -> sink += schedule.at(7));
    measure("gemm.run of 4 cubed, three arrays", rounds, () -> gemm.run(a, a, c));
    measure("the same, one of them a float[]", rounds, () -> gemm.run(heap, a, c));
    measure("optimizer.step of 16 numbers", rounds, () -> optimizer.step(a));
    measure("predictor.run of one row", rounds, () -> predictor.run(in, out));
  }
}
