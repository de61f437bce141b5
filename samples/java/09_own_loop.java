// A custom training loop: a two-layer net with hand-written forward and backward, over the program's own arrays. The library scales the loss,
// clips, schedules and updates. In one step the gradients overflow, and that step is skipped. Prints the same numbers as 09_own_loop.c.
// Run: java -cp scaletrain.jar 09_own_loop.java

import java.nio.FloatBuffer;
import java.util.List;
import java.util.Map;
import org.scaletrain.Array;
import org.scaletrain.Batch;
import org.scaletrain.Context;
import org.scaletrain.ContextOptions;
import org.scaletrain.DType;
import org.scaletrain.LossScaler;
import org.scaletrain.Optimizer;
import org.scaletrain.Schedule;

class OwnLoop {
  static final int ROWS = 64, HIDDEN = 32;
  static int state = 1;

  /** A random number in [-1, 1). */
  static float uniform() {
    state = state * 1664525 + 1013904223;
    return (float) (state >>> 8) / (1 << 23) - 1;
  }

  /** y = v . tanh(w x + b) and its gradients. */
  static class Net {
    final Batch parameters = Batch.of("w", vector(), "b", vector(), "v", vector());
    final Array[] gradients = {vector(), vector(), vector()};
    final FloatBuffer w = parameters.get("w").floats(), b = parameters.get("b").floats(), v = parameters.get("v").floats();

    static Array vector() {
      return Array.allocate(DType.F32, HIDDEN);
    }

    Net() {
      for (int j = 0; j < HIDDEN; ++j) {
        w.put(j, 2 * uniform());
        b.put(j, uniform());
        v.put(j, 0.1f * uniform());
      }
    }

    /** Returns the mean squared error against sin(3 x), and computes `scale` times its gradients. */
    double forwardBackward(double scale) {
      double loss = 0;
      float[] h = new float[HIDDEN], dw = new float[HIDDEN], db = new float[HIDDEN], dv = new float[HIDDEN];
      for (int i = 0; i < ROWS; ++i) {
        float x = uniform(), y = 0;
        for (int j = 0; j < HIDDEN; ++j) y += v.get(j) * (h[j] = (float) Math.tanh(w.get(j) * x + b.get(j)));
        float error = y - (float) Math.sin(3 * x);
        loss += error * error / ROWS;
        float dy = (float) (scale * 2 * error / ROWS);
        for (int j = 0; j < HIDDEN; ++j) {
          float dh = dy * v.get(j) * (1 - h[j] * h[j]);
          dv[j] += dy * h[j];
          dw[j] += dh * x;
          db[j] += dh;
        }
      }
      gradients[0].floats().put(dw);
      gradients[1].floats().put(db);
      gradients[2].floats().put(dv);
      return loss;
    }
  }

  static String shown(double norm) {
    return Double.isFinite(norm) ? String.format("%.3f", norm) : "inf";
  }

  static boolean run(String device) {
    Net net = new Net();
    Map<String, Object> groups = Map.of("pattern", "b", "weight_decay_scale", 0);
    try (Context context = new Context(new ContextOptions().device(device));
        LossScaler scaler = new LossScaler(context);
        Schedule schedule = new Schedule(Map.of("schedule", "cosine", "lr", 0.02, "warmup", 20, "lr_steps", 600));
        Optimizer optimizer = new Optimizer(context, net.parameters, Map.of("optimizer", "adamw", "groups", List.of(groups)))) {
      double first = 0, loss = 0;
      int updates = 0, skips = 0;
      for (int step = 1; step <= 600; ++step) {
        double scale = scaler.scale();
        loss = net.forwardBackward(scale);
        if (step == 300) net.gradients[0].floats().put(7, Float.POSITIVE_INFINITY);  // simulates an overflow of 16-bit gradients
        scaler.unscale(net.gradients);
        double norm = Optimizer.clipNorm(context, 1, net.gradients);
        if (scaler.step()) {
          optimizer.set("lr", schedule.at(updates++));
          optimizer.step(net.gradients);
        }
        if (scaler.update()) ++skips;
        if (step == 1) first = loss;
        if (step == 1 || step % 150 == 0) System.out.printf("step %3d  loss %.4f  norm %s  scale %.0f%n", step, loss, shown(norm), scale);
      }
      System.out.printf("%d of 600 steps was skipped%n", skips);
      return loss <= 0.02 * first && skips == 1 && updates == 599;
    }
  }

  public static void main(String[] arguments) {
    String device = List.of(arguments).contains("--device") ? arguments[arguments.length - 1] : "cpu";  // --device NAME at the end
    System.exit(run(device) ? 0 : 1);
  }
}
