package org.scaletrain.tests;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.*;
import org.scaletrain.*;

/** Repeats one action and prints by how many KiB the process has grown since the first tenth of the rounds: {@code FlatMemoryTrial WHAT ROUNDS}. */
final class FlatMemoryTrial {
  static final int OBJECTS = 15;  // objects per round
  private static final int COLLECT_EVERY = 20;

  private FlatMemoryTrial() {}

  public static void main(String[] words) throws Exception {
    int rounds = Integer.parseInt(words[1]);
    long grown = switch (words[0]) {
      case "steps" -> steps(rounds);
      case "closed" -> grownBy(rounds, () -> objects(true).forEach(Handle::close));
      case "dropped" -> grownBy(rounds, () -> objects(true));
      case "errors" -> errors(rounds);
      default -> throw new IllegalArgumentException(words[0]);
    };
    collect(0);
    System.out.println(grown + " KiB, " + Library.liveHandles() + " handles");
  }

  private static long steps(int rounds) throws Exception {
    try (Context context = new Context(new ContextOptions().threads(1)); Model model = Nets.mlp(context);
        Trainer given = new Trainer(model, Nets.recipe()); Trainer drawing = new Trainer(model, Nets.recipe(), Data.arrays(context, Nets.batch()))) {
      Batch direct = Nets.batch(), heap = Nets.heapBatch();
      return grownBy(rounds / 5, () -> {
        given.step(direct);
        given.step(heap);
        given.forward(heap);
        given.backward(null);
        given.apply();
        drawing.run(drawing.step().step() + 1, report -> {});
      });
    }
  }

  private static long errors(int rounds) throws Exception {
    try (Context context = new Context(new ContextOptions().threads(1)); Model model = Nets.mlp(context);
        Trainer trainer = new Trainer(model, Nets.recipe(), Data.arrays(context, Nets.batch()))) {
      Batch x = Batch.of("x", Nets.batch().get("x"));
      return grownBy(rounds / 4, () -> {
        thrown(InvalidArgument.class, () -> trainer.step(x));
        thrown(InvalidArgument.class, () -> new Recipe("{\"lrr\": 1}"));
        thrown(WrongState.class, trainer::apply);
        thrown(IllegalStateException.class, () -> trainer.run(Long.MAX_VALUE, report -> {
          throw new IllegalStateException("as meant");
        }));
      });
    }
  }

  private static void thrown(Class<? extends Throwable> wanted, Runnable call) {
    try {
      call.run();
    } catch (RuntimeException error) {
      if (wanted.isInstance(error)) return;
      throw error;
    }
    throw new AssertionError("nothing was thrown");
  }

  /** One object of each kind. With {@code areSeen}, buffers over the memory of two of them keep these until Java collects the buffers. */
  static List<Handle> objects(boolean areSeen) {
    Array array = Array.allocate(DType.F32, 4, 4);
    Context context = new Context(new ContextOptions().threads(1).log((level, area, text) -> {}));
    Graph graph = new Graph(context);
    graph.loss(Ops.mean(graph.linear("y", graph.input("x", Graph.BATCH, 4), 2)));
    Model model = new Model(graph, 1);
    Data data = Data.arrays(context, Batch.of("x", array));
    Recipe recipe = new Recipe().batch(4);
    Trainer trainer = new Trainer(model, recipe, data);
    trainer.setSchedule(k -> 0.1);
    Optimizer optimizer = new Optimizer(context, Batch.of("w", array), Map.of("optimizer", "adamw"));
    Tensor tensor = new Tensor(context, DType.F32, 3);
    if (areSeen) {
      optimizer.state();
      tensor.array();
    }
    List<Handle> all = new ArrayList<>(List.of(trainer, data, model, graph, optimizer, tensor, recipe, Tensor.wrap(context, array),
        new Schedule("{\"lr\": 0.1}"), new LossScaler(context), new Predictor(model), new Gemm(context, new GemmProblem(4, 4, 4)),
        new Accumulator(context, 2, array), Data.rows(context, 4, Map.of("x", ArrayType.f32(4)), (rows, arrays) -> {}), context));
    if (all.size() != OBJECTS) throw new AssertionError(all.size());
    return all;
  }

  /** Growth after the first tenth of the rounds. Garbage that Java collects now and then reaches its maximum in that tenth. */
  private static long grownBy(int rounds, Runnable work) throws Exception {
    long handles = Library.liveHandles(), before = 0;
    int warm = Math.max(5 * COLLECT_EVERY, rounds / 10);
    for (int i = 1; i <= warm + rounds; ++i) {
      work.run();
      if (i % COLLECT_EVERY == 0 || i == warm || i == warm + rounds) collect(handles);
      if (i == warm) before = residentKb();
    }
    return residentKb() - before;
  }

  private static void collect(long handles) throws InterruptedException {
    for (int i = 0; i == 0 || (i < 1000 && Library.liveHandles() > handles); ++i) {  // twice if a buffer keeps an object
      System.gc();
      Thread.sleep(1);
    }
  }

  private static long residentKb() throws IOException {
    return Long.parseLong(Files.readString(Path.of("/proc/self/statm")).split(" ")[1]) * 4;  // KiB per page on x86-64
  }
}
