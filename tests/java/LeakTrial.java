package org.scaletrain.tests;

import java.io.*;
import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.*;
import java.util.stream.Stream;
import org.scaletrain.*;

/**
 * The program that LeaksTest runs under valgrind. Makes steps and the other long calls twice, with held arrays, callbacks and errors. At the end it
 * simulates defects: it leaks the DLPacks of three tensors, and reads freed memory.
 */
final class LeakTrial {
  private LeakTrial() {}

  public static void main(String[] words) throws Exception {
    for (int round = 0; round < 2; ++round) work();
    wrong();
    collect();
    System.out.println("handles left: " + Library.liveHandles());
  }

  private static void work() throws IOException {
    Batch batch = Nets.batch(), heap = Nets.heapBatch();
    try (Context context = new Context(new ContextOptions().threads(2).log((level, area, text) -> {})); Model model = Nets.mlp(context)) {
      steps(context, model, batch, heap);
      callbacks(context);
      parts(context, batch);
      streams(context, model);
      checkpoints(context, model, batch);
      new Tensor(context, DType.F32, 16).array().floats().put(0, 1);
    }
  }

  private static void wrong() {
    try (Context context = new Context(new ContextOptions().threads(1)); Model model = Nets.mlp(context)) {
      for (int i = 0; i < 3; ++i) new Tensor(context, DType.F32, 16).toDlpack();
      readTooLate(model);
    }
  }

  private static void steps(Context context, Model model, Batch batch, Batch heap) {
    try (Data data = Data.arrays(context, batch); Trainer trainer = new Trainer(model, Nets.recipe(), data)) {
      trainer.setSchedule(k -> 0.01);
      for (int step = 0; step < 6; ++step) trainer.step(step % 2 == 0 ? batch : heap);
      trainer.run(12, report -> {});
      for (int step = 0; step < 3; ++step) {
        trainer.forward(heap).get("prediction").toFloats();
        trainer.backward(null);
        trainer.apply();
        while (trainer.advance(heap, Duration.ZERO).isEmpty()) Thread.yield();
      }
      trainer.evaluate(data);
      trainer.gradient(model.parameters().get(0).name());
      for (Runnable call : List.<Runnable>of(() -> trainer.step(Batch.of("x", batch.get("x"))), () -> trainer.set("nothing", 1),
               () -> trainer.run(100, report -> failing()), () -> trainer.backward(null)))
        failed(call);
      trainer.explain();
      trainer.timeline();
      try (Predictor predictor = new Predictor(model)) {
        Batch x = Batch.of("x", heap.get("x")), out = Batch.of("prediction", Array.of(new float[Nets.ROWS], Nets.ROWS, 1));
        for (int i = 0; i < 4; ++i) predictor.run(x, out);
        predictor.refresh();
      }
    }
  }

  private static final class Doubling implements DifferentiableOp {
    @Override
    public List<ArrayType> shape(List<ArrayType> inputs) {
      return inputs;
    }

    @Override
    public void forward(List<BorrowedArray> inputs, List<BorrowedArray> outputs) {
      for (int i = 0; i < inputs.get(0).size(); ++i) outputs.get(0).setFloat(i, 2 * inputs.get(0).getFloat(i));
    }

    @Override
    public void backward(List<BorrowedArray> inputs, List<BorrowedArray> outputs, List<BorrowedArray> outputGradients, List<BorrowedArray> inputGradients) {
      for (int i = 0; i < inputs.get(0).size(); ++i) inputGradients.get(0).setFloat(i, 2 * outputGradients.get(0).getFloat(i));
    }
  }

  private static void callbacks(Context context) {
    context.registerOp("doubled", new Doubling());
    Graph graph = new Graph(context);
    Value x = graph.input("x", Graph.BATCH, 1);
    Value doubled = graph.op("doubled", graph.linear("line", x, 4));
    graph.loss(Ops.mse(graph.linear("out", doubled, 1), graph.input("y", Graph.BATCH, 1)));
    Map<String, ArrayType> fields = Map.of("x", ArrayType.f32(1), "y", ArrayType.f32(1));
    Data rows = Data.rows(context, 64, fields, (ids, arrays) -> {
      for (BorrowedArray array : arrays.values()) for (int i = 0; i < ids.length; ++i) array.setFloat(i, ids[i]);
    });
    Trainer trainer = new Trainer(new Model(graph, 1), Nets.recipe(), rows);  // not closed: left to the garbage collector
    trainer.run(4, report -> {});
    failed(() -> new Trainer(Nets.mlp(context), Nets.recipe(), Data.rows(context, 64, fields, (ids, arrays) -> failing())).step());
  }

  private static void parts(Context context, Batch batch) {
    Array weights = Array.allocate(DType.F32, 32), gradient = Array.allocate(DType.F32, 32);
    Array copies = Array.allocate(DType.BF16, 32);
    try (Optimizer optimizer = new Optimizer(context, Batch.of("w", weights), Map.of("optimizer", "adamw"));
        LossScaler scaler = new LossScaler(context); Accumulator accumulator = new Accumulator(context, 2, gradient);
        Schedule schedule = new Schedule(Map.of("lr", 0.1)); Gemm gemm = new Gemm(context, new GemmProblem(4, 4, 4));
        Recipe recipe = new Recipe("{\"batch\": 4}")) {
      optimizer.keepCopies(copies);
      for (int step = 0; step < 4; ++step) {
        optimizer.step(step % 2 == 0 ? gradient : Array.of(gradient.toFloats(), 32));
        Optimizer.clipNorm(context, 1, gradient);
        accumulator.add(1);
        accumulator.shouldStep();
        schedule.at(step);
      }
      optimizer.state().get(0).bytes().get(0);
      accumulator.state().get(0).bytes().get(0);
      scaler.scale();
      scaler.state();
      recipe.json();
      Array square = Array.of(new float[16], 4, 4);
      gemm.run(square, square, Array.of(new float[16], 4, 4));
      gemm.run(square, gemm.pack(square), Array.of(new float[16], 4, 4));
      failed(() -> gemm.run(square, batch.get("x"), square));
      failed(() -> new Recipe("{\"lrr\": 1}"));
      Tensor.wrap(context, weights).array();
      Tensor.fromDlpack(context, new Tensor(context, DType.F32, 4).toDlpack()).array();
    }
  }

  private static void checkpoints(Context context, Model model, Batch batch) throws IOException {
    Path folder = Files.createTempDirectory("leaks");
    try (Checkpoint checkpoint = new Checkpoint(context, folder, new CheckpointOptions().keepLast(1));
         Trainer trainer = new Trainer(model, Nets.recipe())) {
      trainer.saveEvery(checkpoint, 1, Duration.ZERO);
      for (int step = 0; step < 2; ++step) trainer.step(batch).saveError();
      try (Pending pending = trainer.beginSave(checkpoint, Map.of("note", "text"))) {
        pending.await();
      }
      trainer.resume(checkpoint);
      model.load(checkpoint);
      checkpoint.save(9, batch);
      checkpoint.load(Nets.heapBatch());
      checkpoint.verify(null);
      failed(() -> checkpoint.load(Batch.of("other", batch.get("x"))));
      failed(() -> new Checkpoint(context, folder));
      checkpoint.progress();
    }
    try (Stream<Path> all = Files.walk(folder)) {
      for (Path path : all.sorted(Comparator.reverseOrder()).toList()) Files.delete(path);
    }
  }

  private static void streams(Context context, Model model) throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    model.write(bytes);
    try (Model copy = model.copy()) {
      copy.read(new ByteArrayInputStream(bytes.toByteArray()));
      copy.blend(model, 0.5);
      failed(() -> {
        try {
          copy.read(new ByteArrayInputStream(bytes.toByteArray(), 0, 40));
        } catch (IOException none) {
          throw new IllegalStateException(none);
        }
      });
    }
  }

  /** Reads weights from a buffer whose memory has been freed explicitly. */
  private static void readTooLate(Model model) {
    ParameterInfo first = model.parameters().get(0);
    ByteBuffer memory = ByteBuffer.allocateDirect((int) first.type().size() * 4).order(ByteOrder.nativeOrder());
    Array array = Array.of(DType.F32, memory, first.type().dims());
    try {
      Field unsafe = Class.forName("sun.misc.Unsafe").getDeclaredField("theUnsafe");
      unsafe.setAccessible(true);
      unsafe.getType().getMethod("invokeCleaner", ByteBuffer.class).invoke(unsafe.get(null), memory);
    } catch (ReflectiveOperationException none) {
      throw new IllegalStateException(none);
    }
    model.set(first.name(), array);
  }

  private static void failing() {
    throw new IllegalStateException("as meant");
  }

  private static void failed(Runnable call) {
    try {
      call.run();
    } catch (ScaleTrainException | IllegalStateException asMeant) {
      return;
    }
    throw new AssertionError("this call was to fail");
  }

  /** Collects until the library's objects are gone, and overwrites stale pointers in Java's heap. */
  private static void collect() throws InterruptedException {
    for (int i = 0; i < 100 && Library.liveHandles() > 0; ++i) {
      System.gc();
      Thread.sleep(20);
    }
    Object kept = null;
    for (int i = 0; i < 4000; ++i) kept = new long[4096];
    if (kept == null) throw new AssertionError();
    System.gc();
  }
}
