// A pipeline of the program's own stages: a model of four layers, with hand-written forward and backward, is cut into stages on ranks, here
// threads of this process. The library runs a schedule and sends activations and gradients. The weights have the same bits as with one
// stage. Prints the same numbers as 16_own_stages.c.
// Run: java -cp scaletrain.jar 16_own_stages.java [gpipe|1f1b|zb-h1|interleaved|zb-v]

import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Collectors;
import org.scaletrain.ArrayType;
import org.scaletrain.BorrowedArray;
import org.scaletrain.Communicator;
import org.scaletrain.Context;
import org.scaletrain.ContextOptions;
import org.scaletrain.Pipeline;
import org.scaletrain.Stage;
import org.scaletrain.StageWork;

class OwnStages {
  static final int LAYERS = 4, WIDTH = 8, ROWS = 8, SIZE = ROWS * WIDTH, MICRO_BATCHES = 8, ALL = MICRO_BATCHES * SIZE, STEPS = 200;

  /** Random numbers in [-1, 1), times `scale`. */
  static float[] uniform(int state, int size, float scale) {
    float[] numbers = new float[size];
    for (int k = 0; k < size; ++k) {
      state = state * 1664525 + 1013904223;
      numbers[k] = scale * ((float) (state >>> 8) / (1 << 23) - 1);
    }
    return numbers;
  }

  /** Each layer, y = tanh(x w), is a part. Only the rank of its stage uses its weights. */
  static class Model {
    final float[] drawn = uniform(1, LAYERS * WIDTH * WIDTH, 0.6f), inputs = uniform(2, ALL, 1), targets = new float[ALL];
    final float[][] weights = new float[LAYERS][], gradients = new float[LAYERS][WIDTH * WIDTH], predictions = new float[MICRO_BATCHES][];

    Model() {
      for (int p = 0; p < LAYERS; ++p) weights[p] = Arrays.copyOfRange(drawn, p * WIDTH * WIDTH, (p + 1) * WIDTH * WIDTH);
      for (int k = 0; k < ALL; ++k) targets[k] = 0.5f * (float) Math.sin(3.0 * inputs[k]);
    }
  }

  /** The stage of a rank: its layers. */
  static class Layers implements Stage {
    final Model model;
    final Set<Integer> parts = new TreeSet<>();
    final double[] losses = new double[STEPS];  // of the rank with the last part; 0 on the others
    double bubble;
    int step;

    Layers(Model model) {
      this.model = model;
    }

    static float[] copy(BorrowedArray array) {
      float[] values = new float[SIZE];
      array.get(0, values);
      return values;
    }

    float[] x(StageWork work) {
      int begin = work.microBatch() * SIZE;
      return work.input() == null ? Arrays.copyOfRange(model.inputs, begin, begin + SIZE) : copy(work.input());
    }

    /** The gradient of x w. The last part begins with the loss, the mean squared error. */
    float[] dz(StageWork work) {
      float[] y = work.output() == null ? model.predictions[work.microBatch()] : copy(work.output());
      float[] dz = work.outputGradient() == null ? new float[SIZE] : copy(work.outputGradient());
      for (int k = 0; k < SIZE; ++k) {
        if (work.outputGradient() == null) dz[k] = 2 * (y[k] - model.targets[work.microBatch() * SIZE + k]) / ALL;
        dz[k] *= 1 - y[k] * y[k];
      }
      return dz;
    }

    @Override
    public void forward(StageWork work) {
      float[] x = x(work), w = model.weights[work.part()], y = new float[SIZE];
      parts.add(work.part());
      for (int k = 0; k < SIZE; ++k) {
        float z = 0;
        for (int i = 0; i < WIDTH; ++i) z += x[k / WIDTH * WIDTH + i] * w[i * WIDTH + k % WIDTH];
        y[k] = (float) Math.tanh(z);
        float error = y[k] - model.targets[work.microBatch() * SIZE + k];
        if (work.output() == null) losses[step] += error * error / ALL;
      }
      if (work.output() == null) model.predictions[work.microBatch()] = y;
      else work.output().set(0, y);
    }

    @Override
    public void backwardInput(StageWork work) {
      if (work.inputGradient() == null) return;
      float[] dz = dz(work), w = model.weights[work.part()], dx = new float[SIZE];
      for (int k = 0; k < SIZE; ++k)
        for (int j = 0; j < WIDTH; ++j) dx[k] += dz[k / WIDTH * WIDTH + j] * w[k % WIDTH * WIDTH + j];
      work.inputGradient().set(0, dx);
    }

    @Override
    public void backwardWeight(StageWork work) {
      float[] x = x(work), dz = dz(work), dw = model.gradients[work.part()];
      for (int k = 0; k < SIZE; ++k)
        for (int i = 0; i < WIDTH; ++i) dw[i * WIDTH + k % WIDTH] += x[k / WIDTH * WIDTH + i] * dz[k];
    }

    /** Gradient descent with a learning rate of 1. */
    void update() {
      for (int part : parts)
        for (int k = 0; k < WIDTH * WIDTH; ++k) {
          model.weights[part][k] -= model.gradients[part][k];
          model.gradients[part][k] = 0;
        }
    }
  }

  static Layers trainStage(Model model, Communicator rank, String schedule, int chunks) {
    Layers stage = new Layers(model);
    List<ArrayType> types = Collections.nCopies(chunks, ArrayType.f32(ROWS, WIDTH));
    try (Pipeline pipeline = new Pipeline(rank, schedule, types, types, stage)) {
      stage.bubble = Double.parseDouble(pipeline.schedule(MICRO_BATCHES).replaceAll(".*\"bubble\":([^,}]*).*", "$1"));
      for (; stage.step < STEPS; ++stage.step) {
        pipeline.run(MICRO_BATCHES);
        stage.update();
      }
    }
    return stage;
  }

  static void train(String device, Model model, String schedule, int stages) throws Exception {
    ExecutorService threads = Executors.newFixedThreadPool(stages);
    try (Context context = new Context(new ContextOptions().device(device))) {
      List<Future<Layers>> results = Communicator.local(context, stages).stream()
          .map(rank -> threads.submit(() -> trainStage(model, rank, schedule, LAYERS / stages))).collect(Collectors.toList());
      for (Future<Layers> result : results) {
        Layers stage = result.get();
        if (stage.losses[0] == 0) continue;
        System.out.printf("%-11s  %d stage%s  bubble %.3f  loss", schedule, stages, stages == 1 ? " " : "s", stage.bubble);
        for (int step : new int[] {0, 49, 99, 149, 199}) System.out.printf("  %.4f", stage.losses[step]);
        System.out.println();
      }
    } finally {
      threads.shutdown();
    }
  }

  public static void main(String[] arguments) throws Exception {
    String device = List.of(arguments).contains("--device") ? arguments[arguments.length - 1] : "cpu";  // --device NAME at the end
    String schedule = arguments.length > 0 && !arguments[0].startsWith("--") ? arguments[0] : "1f1b";
    boolean hasTwo = schedule.equals("interleaved") || schedule.equals("zb-v");  // parts a stage
    Model alone = new Model(), model = new Model();
    train(device, alone, "interleaved", 1);  // all parts on one stage
    train(device, model, schedule, hasTwo ? 2 : LAYERS);
    boolean alike = Arrays.deepEquals(alone.weights, model.weights);
    System.out.println(alike ? "the weights have the same bits" : "the weights differ");
    System.exit(alike ? 0 : 1);
  }
}
