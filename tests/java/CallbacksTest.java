package org.scaletrain.tests;

import static org.junit.jupiter.api.Assertions.*;

import java.io.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.scaletrain.*;

/** Exceptions of callbacks are rethrown unchanged, from any thread. Arrays that callbacks borrow are invalid after they return. */
class CallbacksTest {
  /** An exception that is compared by identity. */
  static final class Own extends RuntimeException {
    private static final long serialVersionUID = 1;
  }

  private static void arrives(Throwable thrown, Executable call) {
    assertSame(thrown, assertThrows(thrown.getClass(), call));
  }

  private static <T extends Throwable, R> R thrown(T what) throws T {
    throw what;
  }

  @Test
  void aStepsListenerEndsTheRun() {
    try (Context context = new Context(); Trainer trainer = trainerOverRows(context)) {
      List<Long> steps = new ArrayList<>();
      trainer.run(3, report -> steps.add(report.step()));
      trainer.runWhile(10, report -> report.step() < 5);
      trainer.run(6);
      assertEquals(List.of(1L, 2L, 3L), steps);
      Own own = new Own();
      arrives(own, () -> trainer.run(100, report -> thrown(own)));
      Error error = new StackOverflowError();
      arrives(error, () -> trainer.run(100, report -> thrown(error)));
      assertEquals(9, trainer.step().step());
    }
  }

  @Test
  void anExceptionOfTheRateEndsTheStep() {
    try (Context context = new Context(); Trainer trainer = Nets.trainer(context)) {
      Batch batch = Nets.batch();
      trainer.setSchedule(k -> 0.5 / (k + 1));
      assertEquals(0.5, trainer.step(batch).lr());
      assertEquals(0.25, trainer.step(batch).lr());
      Own own = new Own();
      trainer.setSchedule(k -> thrown(own));
      arrives(own, () -> trainer.step(batch));
      trainer.setSchedule(null);
      assertEquals(3, trainer.step(batch).step());
    }
  }

  private static Map<String, ArrayType> fields() {
    return Map.of("x", ArrayType.f32(1), "y", ArrayType.f32(1));
  }

  private static Trainer trainerOverRows(Context context) {
    Data data = Data.rows(context, 64, fields(), (rows, arrays) -> {
      for (int i = 0; i < rows.length; ++i) {
        arrays.get("x").setFloat(i, rows[i] / 64f);
        arrays.get("y").setFloat(i, rows[i] * rows[i] / 4096f);
      }
    });
    return new Trainer(Nets.mlp(context), Nets.recipe(), data);
  }

  @Test
  void rowsAreWrittenWhereTheLibraryWantsThem() {
    try (Context context = new Context(); Trainer byCallback = trainerOverRows(context)) {
      Array x = Array.allocate(org.scaletrain.DType.F32, 64, 1), y = Array.allocate(org.scaletrain.DType.F32, 64, 1);
      for (int i = 0; i < 64; ++i) {
        x.floats().put(i, i / 64f);
        y.floats().put(i, i * i / 4096f);
      }
      Trainer byArrays = new Trainer(Nets.mlp(context), Nets.recipe(), Data.arrays(context, Batch.of("x", x, "y", y)));
      byCallback.run(20);
      byArrays.run(20);
      assertEquals(byArrays.digest(), byCallback.digest());
    }
  }

  @Test
  void anExceptionOfTheRowsArrivesAtTheStep() {
    try (Context context = new Context()) {
      Own own = new Own();
      Data data = Data.rows(context, 64, fields(), (rows, arrays) -> thrown(own));
      Trainer trainer = new Trainer(Nets.mlp(context), Nets.recipe(), data);
      arrives(own, trainer::step);
      arrives(own, () -> trainer.evaluate(data));
    }
  }

  @Test
  void whatIsLentEndsWithTheCallback() throws Exception {
    try (Context context = new Context()) {
      AtomicReference<BorrowedArray> kept = new AtomicReference<>();
      AtomicReference<Throwable> elsewhere = new AtomicReference<>();
      Data data = Data.rows(context, 64, fields(), (rows, arrays) -> {
        BorrowedArray x = arrays.get("x");
        kept.set(x);
        assertEquals(rows.length, x.size());
        assertThrows(InvalidArgument.class, () -> x.setInt(0, 1));
        assertThrows(IndexOutOfBoundsException.class, () -> x.getFloat(x.size()));
        assertThrows(IndexOutOfBoundsException.class, () -> x.getFloat(-1));
        assertThrows(RuntimeException.class, () -> x.set(1, new float[x.size()]));
        Thread thread = new Thread(() -> {
          try {
            x.setFloat(0, 1);
          } catch (WrongState refused) {
            elsewhere.set(refused);
          }
        });
        thread.start();
        join(thread);
        x.set(0, new float[x.size()]);
        arrays.get("y").set(0, new float[x.size()]);
      });
      new Trainer(Nets.mlp(context), Nets.recipe(), data).step();
      assertTrue(elsewhere.get().getMessage().contains("callback's thread"));
      assertTrue(assertThrows(WrongState.class, () -> kept.get().getFloat(0)).getMessage().contains("thread"));
      assertThrows(WrongState.class, () -> kept.get().unsafeBuffer());
    }
  }

  private static void join(Thread thread) {
    try {
      thread.join();
    } catch (InterruptedException interrupted) {
      throw new IllegalStateException(interrupted);
    }
  }

  /** y = 3 x, and its gradient. */
  static class Triple implements DifferentiableOp {
    volatile BorrowedArray kept;

    @Override
    public List<ArrayType> shape(List<ArrayType> inputs) {
      return List.of(inputs.get(0));
    }

    @Override
    public void forward(List<BorrowedArray> inputs, List<BorrowedArray> outputs) {
      kept = inputs.get(0);
      assertFalse(inputs.get(0).isWritable());
      assertThrows(InvalidArgument.class, () -> inputs.get(0).setFloat(0, 1));
      for (int i = 0; i < inputs.get(0).size(); ++i) outputs.get(0).setFloat(i, 3 * inputs.get(0).getFloat(i));
    }

    @Override
    public void backward(List<BorrowedArray> inputs, List<BorrowedArray> outputs, List<BorrowedArray> outputGradients, List<BorrowedArray> inputGradients) {
      if (inputGradients.get(0) == null) return;
      float[] gradients = outputGradients.get(0).toFloats();
      for (int i = 0; i < gradients.length; ++i) gradients[i] *= 3;
      inputGradients.get(0).set(0, gradients);
    }
  }

  private static Trainer trainerOfOp(Context context, String op) {
    Graph graph = new Graph(context);
    Value x = graph.input("x", Graph.BATCH, 1), y = graph.input("y", Graph.BATCH, 1);
    Value hidden = graph.linear("hidden", x, 4);
    hidden = op.equals("affine") ? hidden.mul(3) : graph.op(op, hidden);
    graph.loss(Ops.mse(graph.linear("out", hidden, 1), y));
    return new Trainer(new Model(graph, 1), Nets.recipe());
  }

  @Test
  void anOpOfTheProgramsOwnTrainsAsOneOfOurs() {
    try (Context context = new Context()) {
      Triple triple = new Triple();
      context.registerOp("triple", triple);
      Trainer own = trainerOfOp(context, "triple"), ours = trainerOfOp(context, "affine");
      for (int i = 0; i < 10; ++i) assertEquals(ours.step(Nets.batch()).loss(), own.step(Nets.batch()).loss(), 1e-6);
      assertThrows(WrongState.class, () -> triple.kept.getFloat(0));
    }
  }

  @Test
  void anOpStaysWhileItMayBeCalled() {
    Trainer trainer = trainerWithoutItsContext();
    for (int i = 0; i < 5; ++i) {
      Nets.stress();
      assertTrue(trainer.step(Nets.batch()).loss() > 0);
    }
    trainer.close();
  }

  private static Trainer trainerWithoutItsContext() {
    Context context = new Context();
    context.registerOp("triple", new Triple());
    return trainerOfOp(context, "triple");
  }

  /** Throws in one of its methods. */
  private static final class Failing extends Triple {
    private final String where;
    private final Own own;

    Failing(String where, Own own) {
      this.where = where;
      this.own = own;
    }

    private void at(String here) {
      if (where.equals(here)) throw own;
    }

    @Override
    public List<ArrayType> shape(List<ArrayType> inputs) {
      at("shape");
      return where.equals("null") ? null : super.shape(inputs);
    }

    @Override
    public void forward(List<BorrowedArray> inputs, List<BorrowedArray> outputs) {
      at("forward");
      super.forward(inputs, outputs);
    }

    @Override
    public void backward(List<BorrowedArray> inputs, List<BorrowedArray> outputs, List<BorrowedArray> outputGradients, List<BorrowedArray> inputGradients) {
      at("backward");
      super.backward(inputs, outputs, outputGradients, inputGradients);
    }
  }

  @Test
  void exceptionsOfAnOpArriveAtTheCallThatRanIt() {
    try (Context context = new Context()) {
      Own own = new Own();
      for (String where : List.of("shape", "forward", "backward", "null")) context.registerOp(where, new Failing(where, own));
      arrives(own, () -> trainerOfOp(context, "shape"));
      assertThrows(NullPointerException.class, () -> trainerOfOp(context, "null"));
      for (String where : List.of("forward", "backward")) {
        Trainer trainer = trainerOfOp(context, where);
        arrives(own, () -> trainer.step(Nets.batch()));
      }
    }
  }

  @Test
  void weightsGoThroughStreams() throws IOException {
    try (Context context = new Context(); Model model = Nets.mlp(context)) {
      ByteArrayOutputStream bytes = new ByteArrayOutputStream();
      model.write(bytes);
      Model other = Model.builtin(context, "mlp", Map.of("inputs", 1, "hidden", new long[] {4}, "outputs", 1), 2);
      assertFalse(other.digest().equals(model.digest()));
      ReadReport report = other.read(new ByteArrayInputStream(bytes.toByteArray()), new ReadOptions());
      assertEquals(model.digest(), other.digest());
      assertEquals(model.parameters().size(), report.read());
      byte[] damaged = java.util.Arrays.copyOf(bytes.toByteArray(), bytes.size() - 3);
      assertThrows(CheckpointError.class, () -> other.read(new ByteArrayInputStream(damaged)));
      IOException failure = new IOException("full");
      arrives(failure, () -> model.write(new OutputStream() {
        @Override
        public void write(int one) throws IOException {
          throw failure;
        }
      }));
      arrives(failure, () -> model.read(new InputStream() {
        @Override
        public int read() throws IOException {
          throw failure;
        }
      }));
    }
  }

  @Test
  void tokensComeOneByOne() {
    try (Context context = new Context()) {
      Model model = Model.builtin(context, "gpt", Map.of("layers", 1, "width", 16, "heads", 2, "context", 8), 1);
      Predictor predictor = new Predictor(model);
      int[] prompt = {84, 104, 101};
      int[] all = predictor.generate(prompt, new GenerateOptions().tokens(6));
      assertEquals(6, all.length);
      List<Integer> some = new ArrayList<>();
      predictor.generate(prompt, new GenerateOptions().tokens(6), token -> {
        some.add(token);
        return some.size() < 3;
      });
      assertArrayEquals(java.util.Arrays.copyOf(all, 3), some.stream().mapToInt(i -> i).toArray());
      Own own = new Own();
      arrives(own, () -> predictor.generate(prompt, new GenerateOptions(), token -> thrown(own)));
    }
  }

  @Test
  void theLogReachesItsListener() {
    List<String> records = Collections.synchronizedList(new ArrayList<>());
    ContextOptions options = new ContextOptions().log((level, area, text) -> {
      assertTrue(level.compareTo(LogLevel.ERROR) >= 0);
      records.add(area + ": " + text);
    });
    try (Context context = new Context(options); Trainer trainer = Nets.trainer(context)) {
      trainer.step(Nets.batch());
    }
    assertFalse(records.isEmpty());
  }

  @Test
  void anExceptionOfTheLogArrivesWhenTheCallIsDone() {
    Own own = new Own();
    try (Context context = new Context(new ContextOptions().log((level, area, text) -> thrown(own)))) {
      Throwable thrown = null;
      for (int i = 0; i < 5 && thrown == null; ++i) {
        try (Trainer trainer = Nets.trainer(context)) {
          trainer.step(Nets.batch());
        } catch (Own arrived) {
          thrown = arrived;
        }
      }
      assertSame(own, thrown);
    }
  }

  private static String digestWith(ContextOptions options) {
    try (Context context = new Context(options.threads(2))) {
      Model model = Model.builtin(context, "mlp", Map.of("inputs", 1, "hidden", new long[] {64, 64}, "outputs", 1), 1);
      Trainer trainer = new Trainer(model, new Recipe().batch(256));
      float[] numbers = new float[256];
      for (int i = 0; i < numbers.length; ++i) numbers[i] = i / 256f;
      Batch batch = Batch.of("x", Array.of(numbers, 256, 1), "y", Array.of(numbers, 256, 1));
      for (int i = 0; i < 5; ++i) trainer.step(batch);
      return trainer.digest();
    }
  }

  @Test
  void theProgramsThreadsComputeTheSameBits() throws Exception {
    String expected = digestWith(new ContextOptions());
    ExecutorService pool = Executors.newFixedThreadPool(2);
    AtomicInteger calls = new AtomicInteger();
    ParallelFor counted = (n, task) -> {
      calls.incrementAndGet();
      ParallelFor.on(pool).run(n, task);
    };
    assertEquals(expected, digestWith(new ContextOptions().parallel(counted)));
    assertTrue(calls.get() > 0);
    // The caller is a task of the same pool, whose threads are all busy.
    ExecutorService one = Executors.newSingleThreadExecutor();
    assertEquals(expected, one.submit(() -> digestWith(new ContextOptions().parallel(ParallelFor.on(one)))).get(60, TimeUnit.SECONDS));
    // A ParallelFor that runs no task, and one that keeps a task for later.
    assertEquals(expected, digestWith(new ContextOptions().parallel((n, task) -> {})));
    AtomicReference<java.util.function.LongConsumer> kept = new AtomicReference<>();
    assertEquals(expected, digestWith(new ContextOptions().parallel((n, task) -> kept.set(task))));
    assertThrows(WrongState.class, () -> kept.get().accept(0));
    Own own = new Own();
    arrives(own, () -> digestWith(new ContextOptions().parallel((n, task) -> thrown(own))));
    pool.shutdown();
    one.shutdown();
  }

  @Test
  void futuresOfStepsAndRunsEndAndAreCancelled() throws Exception {
    try (Context context = new Context()) {
      Trainer trainer = trainerOverRows(context);
      assertEquals(1, trainer.stepAsync(null).get(60, TimeUnit.SECONDS).step());
      trainer.runAsync(5, null).get(60, TimeUnit.SECONDS);
      CountDownLatch begun = new CountDownLatch(3);
      AtomicReference<StepReport> last = new AtomicReference<>();
      CompletableFuture<Void> endless = trainer.runAsync(Long.MAX_VALUE, report -> {
        last.set(report);
        begun.countDown();
      });
      assertTrue(begun.await(60, TimeUnit.SECONDS));
      assertTrue(endless.cancel(true));
      assertThrows(CancellationException.class, () -> endless.get(60, TimeUnit.SECONDS));
      StepReport next = stepWhenFree(trainer);
      assertTrue(next.step() >= last.get().step());
      Own own = new Own();
      CompletableFuture<Void> failing = trainer.runAsync(Long.MAX_VALUE, report -> thrown(own));
      assertSame(own, assertThrows(CompletionException.class, failing::join).getCause());
      Model model = Nets.mlp(context);
      assertThrows(CompletionException.class, () -> model.writeFileAsync(java.nio.file.Path.of("/no/where")).join());
    }
  }

  /** Retries, since the cancelled call takes a moment to end. */
  private static StepReport stepWhenFree(Trainer trainer) throws InterruptedException {
    for (int i = 0;; ++i) {
      try {
        return trainer.step();
      } catch (org.scaletrain.Busy | Cancelled stillThere) {
        if (i > 1000) throw stillThere;
        Thread.sleep(5);
      }
    }
  }
}
