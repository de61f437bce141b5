package org.scaletrain.tests;

import static org.junit.jupiter.api.Assertions.*;

import java.util.*;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;
import org.scaletrain.*;

/** Runs the collector permanently while only the library refers to arrays. The results must equal those without collection. */
class GarbageTest {
  static final int ROUNDS = 24;

  /** Overwrites freed memory. */
  private static void churn() {
    for (int i = 0; i < 20; ++i) Nets.filled(Nets.ROWS, Float.NaN);
  }

  private static List<Object> whileCollecting(Supplier<List<Object>> work) throws InterruptedException {
    AtomicBoolean over = new AtomicBoolean();
    Thread collector = new Thread(() -> {
      while (!over.get()) {
        System.gc();
        churn();
        Thread.yield();
      }
    });
    collector.start();
    try {
      return work.get();
    } finally {
      over.set(true);
      collector.join();
    }
  }

  private static List<Object> steps() {
    Context context = new Context();
    Trainer drawing = new Trainer(Nets.mlp(context), Nets.recipe(), Data.arrays(context, Nets.batch()));
    Trainer given = new Trainer(Nets.mlp(context), Nets.recipe());
    double half = 0.5;
    drawing.setSchedule(k -> 0.01 * half);
    List<Object> numbers = new ArrayList<>();
    for (int round = 0; round < ROUNDS; ++round) {
      numbers.add(drawing.step().loss());
      numbers.add(given.step(Nets.batch()).loss());
      numbers.add(given.step(Nets.heapBatch()).loss());
      given.forward(Nets.batch());
      if (round % 8 == 0) Nets.stress();
      given.backward(null);
      given.apply();
    }
    drawing.run(3L * ROUNDS, report -> numbers.add(report.loss() + 0 * new float[1000].length));
    numbers.add(given.digest());
    return numbers;
  }

  private static List<Object> parts() {
    List<Object> numbers = new ArrayList<>();
    for (int round = 0; round < ROUNDS; ++round) {
      Context context = new Context();
      Optimizer optimizer = new Optimizer(context, Batch.of("w", Nets.filled(64, 1)), Map.of("optimizer", "adamw"));
      Array copies = Array.allocate(DType.BF16, 64);
      optimizer.keepCopies(copies);  // only the optimizer refers to the weights
      Array gradient = Nets.filled(64, round);
      Accumulator accumulator = new Accumulator(context, 2, gradient);
      for (int i = 0; i < 2; ++i) {
        if (round % 8 == 0) Nets.stress();
        accumulator.add(3);
        accumulator.shouldStep();
        numbers.add(optimizer.step(Nets.filled(64, round)).norm());
      }
      numbers.add(copies.shorts().get(round));
      numbers.add(optimizer.state().get(0).bytes().get(5));
      numbers.add(Tensor.fromDlpack(context, Tensor.wrap(context, Nets.filled(64, round)).toDlpack()).array().floats().get(63));
      Array prediction = Array.of(new float[Nets.ROWS], Nets.ROWS, 1);
      new Predictor(Nets.mlp(context)).run(Batch.of("x", Nets.batch().get("x")), Batch.of("prediction", prediction));
      numbers.add(prediction.floats().get(Nets.ROWS - 1));
    }
    return numbers;
  }

  private static List<Object> callbacks() {
    Context context = new Context();
    context.registerOp("triple", new CallbacksTest.Triple());
    Graph graph = new Graph(context);
    Value tripled = graph.op("triple", graph.input("x", Graph.BATCH, 1));
    graph.loss(Ops.mse(graph.linear("line", tripled, 1), graph.input("y", Graph.BATCH, 1)));
    Map<String, ArrayType> fields = new LinkedHashMap<>();
    fields.put("x", ArrayType.f32(1));
    fields.put("y", ArrayType.f32(1));
    Data rows = Data.rows(context, 64, fields, (ids, arrays) -> {
      for (BorrowedArray array : arrays.values()) for (int i = 0; i < ids.length; ++i) array.setFloat(i, ids[i] / 64f);
    });
    Trainer trainer = new Trainer(new Model(graph, 1), Nets.recipe(), rows.split(0.25).training());
    List<Object> numbers = new ArrayList<>();
    trainer.run(2L * ROUNDS, report -> numbers.add(report.loss()));
    numbers.add(trainer.digest());
    return numbers;
  }

  @Test
  void disturbsNoStep() throws InterruptedException {
    assertEquals(steps(), whileCollecting(GarbageTest::steps));
  }

  @Test
  void disturbsNoOptimizerTensorOrPredictor() throws InterruptedException {
    assertEquals(parts(), whileCollecting(GarbageTest::parts));
  }

  @Test
  void disturbsNoCallback() throws InterruptedException {
    assertEquals(callbacks(), whileCollecting(GarbageTest::callbacks));
  }
}
