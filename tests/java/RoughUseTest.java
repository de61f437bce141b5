package org.scaletrain.tests;

import static org.junit.jupiter.api.Assertions.*;

import java.io.*;
import java.lang.ref.WeakReference;
import java.nio.FloatBuffer;
import java.nio.ReadOnlyBufferException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;
import org.scaletrain.*;

/** Misuse causes no crash, no leak and no silently wrong number. */
class RoughUseTest {
  /** Threads make two kinds of calls on one object; each gets the right result, or Busy. */
  private static void ask(Executable one, Executable other) throws InterruptedException {
    Set<Throwable> wrong = ConcurrentHashMap.newKeySet();
    List<Thread> threads = new ArrayList<>();
    for (Executable question : List.of(one, other, one, other, one, other)) {
      Thread thread = new Thread(() -> {
        for (int i = 0; i < 30000 && wrong.isEmpty(); ++i) {
          try {
            question.execute();
          } catch (Busy allowed) {
            continue;
          } catch (Throwable thrown) {
            wrong.add(thrown);
          }
        }
      });
      threads.add(thread);
      thread.start();
    }
    for (Thread thread : threads) thread.join();
    assertEquals(Set.of(), wrong);
  }

  @Test
  void everyThreadGetsItsOwnAnswer() throws InterruptedException {
    try (Context context = new Context(); Trainer trainer = Nets.trainer(context); Recipe recipe = Nets.recipe()) {
      ask(() -> assertEquals(0.01, trainer.get("lr")), () -> assertEquals("adamw", trainer.get("optimizer")));
      ask(() -> assertEquals(0.01, recipe.lr()), () -> assertEquals("adamw", recipe.get("optimizer")));
      ask(() -> assertTrue(trainer.plan().startsWith("{")), () -> assertEquals(0.01, trainer.get("lr")));
      ask(() -> assertTrue(trainer.timeline().startsWith("{")), () -> assertTrue(trainer.plan().startsWith("{")));
    }
  }

  @Test
  void aTensorShowsTheArrayAsItIs() {
    try (Context context = new Context()) {
      Array all = Array.allocate(DType.F32, 8);
      for (int i = 0; i < 8; ++i) all.floats().put(i, i);
      Array columns = Tensor.wrap(context, all.strided(new long[] {2, 2}, 4, 2)).array();
      assertEquals(List.of(0f, 2f, 4f, 6f), elements(columns, 4, 2));
      Tensor constant = Tensor.wrap(context, all.readOnly());
      assertTrue(constant.array().isReadOnly());
      assertThrows(ReadOnlyBufferException.class, () -> constant.array().floats().put(0, 1));
      assertTrue(assertThrows(InvalidArgument.class, constant::toDlpack).getMessage().contains("read-only"));
      assertFalse(Tensor.wrap(context, all).array().isReadOnly());
    }
  }

  private static List<Float> elements(Array of, int row, int column) {
    FloatBuffer all = of.bytes().asFloatBuffer();
    assertArrayEquals(new long[] {2, 2}, of.dims());
    assertThrows(InvalidArgument.class, of::toFloats);  // the array has strides
    return List.of(all.get(0), all.get(column), all.get(row), all.get(row + column));
  }

  @Test
  void twoResultsMayLieBetweenEachOtherInAJavaArray() {
    float[] both = new float[16];
    Array even = Array.of(FloatBuffer.wrap(both, 0, 15)).strided(new long[] {8, 1}, 2, 1);
    Array odd = Array.of(FloatBuffer.wrap(both, 1, 15)).strided(new long[] {8, 1}, 2, 1);
    float[] ones = new float[8];
    Arrays.fill(ones, 1);
    GemmProblem problem = new GemmProblem(8, 1, 1).c(new GemmLayout(DType.F32, 2, 1, 0, false));
    try (Context context = new Context(); Gemm gemm = new Gemm(context, problem)) {
      gemm.run(1, Array.of(ones, 8, 1), Array.of(new float[] {3}, 1, 1), 0, even, new Epilogue().preActivation(odd));
    }
    for (int i = 0; i < 16; ++i) assertEquals(3, both[i], "element " + i);
  }

  @Test
  void whatIsRefusedIsNotKept() {
    try (Context context = new Context(); Trainer trainer = Nets.trainer(context)) {
      List<WeakReference<Object>> refused = new ArrayList<>();
      for (int i = 0; i < 20; ++i) {
        Array wrong = Array.allocate(DType.F32, 3);
        refused.add(new WeakReference<>(wrong));
        assertThrows(InvalidArgument.class, () -> trainer.forward(Batch.of("x", wrong)));
        assertThrows(InvalidArgument.class, () -> trainer.advance(Batch.of("x", wrong), Duration.ZERO));
        assertThrows(InvalidArgument.class, () -> Data.arrays(context, Batch.of("a", wrong, "b", Array.allocate(DType.F32, 4))));
        HostOp op = new Nothing();
        refused.add(new WeakReference<>(op));
        assertThrows(InvalidArgument.class, () -> context.registerOp("add", op));
      }
      Nets.collectUntil("refused objects are collected", () -> refused.stream().allMatch(one -> one.get() == null));
    }
  }

  private static final class Nothing implements HostOp {
    @Override
    public List<ArrayType> shape(List<ArrayType> inputs) {
      return inputs;
    }

    @Override
    public void forward(List<BorrowedArray> inputs, List<BorrowedArray> outputs) {}
  }

  @Test
  void aForwardAfterAForwardKeepsNoEarlierBatch() {
    try (Context context = new Context(); Trainer trainer = Nets.trainer(context)) {
      List<WeakReference<Object>> earlier = new ArrayList<>();
      for (int i = 0; i < 20; ++i) {
        Batch batch = Nets.batch();
        earlier.add(new WeakReference<>(batch.get("x")));
        trainer.forward(batch);
      }
      trainer.forward(Nets.heapBatch());
      Nets.collectUntil("earlier batches are collected", () -> earlier.stream().allMatch(batch -> batch.get() == null));
    }
  }

  @Test
  void timesHaveNoEnd(@TempDir Path folder) {
    Duration forever = Duration.ofSeconds(Long.MAX_VALUE), before = Duration.ofSeconds(Long.MIN_VALUE);
    try (Context context = new Context(); Model model = Nets.mlp(context); Trainer trainer = Nets.trainer(context)) {
      assertTrue(trainer.advance(Nets.batch(), forever).isPresent());
      trainer.advance(Nets.batch(), before);
      assertTrue(model.beginWriteFile(folder.resolve("weights")).await(forever));
      try (Pending written = model.beginWriteFile(folder.resolve("others"))) {
        written.await(before);  // does not wait; closing waits for the end
      }
      assertThrows(InvalidArgument.class, () -> trainer.advance(Nets.batch(), null));
    }
  }

  @Test
  void streamsMayBeSlowButMustGive() throws IOException {
    try (Context context = new Context(); Model model = Nets.mlp(context)) {
      ByteArrayOutputStream weights = new ByteArrayOutputStream();
      model.write(weights);
      String digest = model.digest();
      model.read(new ByteArrayInputStream(weights.toByteArray()) {
        @Override
        public synchronized int read(byte[] to, int at, int count) {
          return super.read(to, at, Math.min(count, 1));
        }
      });
      assertEquals(digest, model.digest());
      IOException none = assertThrows(IOException.class, () -> model.read(new InputStream() {
        @Override
        public int read() {
          return 0;
        }

        @Override
        public int read(byte[] to, int at, int count) {
          return 0;
        }
      }));
      assertTrue(none.getMessage().contains("returned 0"), none.getMessage());
    }
  }

  @Test
  void jsonIsExactOrRefused() {
    Map<String, Object> value = new LinkedHashMap<>();
    value.put("text", "a \"b\" \\ \n größe \uD83D\uDE80");
    value.put("real", 1e-300);
    value.put("list", List.of(1L, true, "x", Map.of()));
    value.put("none", null);
    assertEquals(value, Json.parse(" " + Json.text(value) + "\n"));
    assertEquals("[1,2]", Json.text(new long[] {1, 2}));
    assertEquals("[NaN,-Infinity]", Json.text(new double[] {Double.NaN, Double.NEGATIVE_INFINITY}));
    for (String wrong : List.of("", "{", "[1,", "\"", "tru", "1 2", "{\"a\" 1}", "\"\\u12", "nul", "-"))
      assertThrows(InvalidArgument.class, () -> Json.parse(wrong), wrong);
    assertEquals(Long.MAX_VALUE, Json.parse("9223372036854775807"));
    assertEquals(Long.MIN_VALUE, Json.parse("-9223372036854775808"));
    for (String beyond : List.of("9223372036854775808", "1e400"))
      assertTrue(assertThrows(InvalidArgument.class, () -> Json.parse(beyond)).getMessage().contains(beyond));
    assertThrows(InvalidArgument.class, () -> Json.parse("[".repeat(100000)));
    List<Object> itself = new ArrayList<>();
    itself.add(itself);
    assertThrows(InvalidArgument.class, () -> Json.text(itself));
    assertThrows(InvalidArgument.class, () -> new Recipe(Map.of("groups", itself)));
  }

  @Test
  void indicesAndNullAreNamed() {
    Batch batch = Nets.batch();
    assertTrue(assertThrows(IndexOutOfBoundsException.class, () -> batch.get(2)).getMessage().contains("Index 2"));
    assertThrows(IndexOutOfBoundsException.class, () -> batch.get(Integer.MIN_VALUE));
    assertThrows(InvalidArgument.class, () -> ParallelFor.on(null));
    List<String> messages = new CopyOnWriteArrayList<>();  // rows of the next step are read ahead, on another thread
    try (Context context = new Context()) {
      Map<String, ArrayType> fields = Map.of("x", ArrayType.f32(1), "y", ArrayType.f32(1));
      new Trainer(Nets.mlp(context), Nets.recipe(), Data.rows(context, Nets.ROWS, fields, (rows, arrays) -> {
        for (int i : new int[] {-1, Nets.ROWS, Integer.MAX_VALUE})
          messages.add(assertThrows(IndexOutOfBoundsException.class, () -> arrays.get("x").setFloat(i, 1)).getMessage());
      })).step();
    }
    assertTrue(messages.get(1).contains("Index 8 out of bounds for length 8"), messages.toString());
  }
}
