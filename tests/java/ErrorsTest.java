package org.scaletrain.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;
import org.scaletrain.Accumulator;
import org.scaletrain.Activation;
import org.scaletrain.Array;
import org.scaletrain.Batch;
import org.scaletrain.CheckpointError;
import org.scaletrain.Context;
import org.scaletrain.ContextOptions;
import org.scaletrain.DType;
import org.scaletrain.Data;
import org.scaletrain.Gemm;
import org.scaletrain.GemmLayout;
import org.scaletrain.GemmLibrary;
import org.scaletrain.GemmOrder;
import org.scaletrain.GemmPacking;
import org.scaletrain.GemmProblem;
import org.scaletrain.GemmSource;
import org.scaletrain.Graph;
import org.scaletrain.Handle;
import org.scaletrain.Init;
import org.scaletrain.InvalidArgument;
import org.scaletrain.InvalidHandle;
import org.scaletrain.Json;
import org.scaletrain.Library;
import org.scaletrain.LogLevel;
import org.scaletrain.LossScaler;
import org.scaletrain.Model;
import org.scaletrain.NotFinite;
import org.scaletrain.NotFound;
import org.scaletrain.Ops;
import org.scaletrain.Optimizer;
import org.scaletrain.OutOfMemory;
import org.scaletrain.PackedMatrix;
import org.scaletrain.Predictor;
import org.scaletrain.Recipe;
import org.scaletrain.ScaleTrainException;
import org.scaletrain.Schedule;
import org.scaletrain.Status;
import org.scaletrain.Tensor;
import org.scaletrain.Trainer;
import org.scaletrain.Unsupported;
import org.scaletrain.Value;
import org.scaletrain.WrongState;

/** Each failure is its class, with the library's message whole and what is known about it. */
class ErrorsTest {
  private static ScaleTrainException fails(Class<? extends ScaleTrainException> kind, Status status, Executable call) {
    ScaleTrainException failure = assertThrows(ScaleTrainException.class, call);
    assertEquals(kind, failure.getClass());
    assertEquals(status, failure.status());
    assertNotNull(failure.getMessage());
    assertTrue(failure.getMessage().length() > 10, failure.getMessage());
    return failure;
  }

  @Test
  void statusesAreClasses(@TempDir Path folder) throws Exception {
    Library.require(0, 1);
    fails(Unsupported.class, Status.UNSUPPORTED, () -> Library.require(99, 0));
    ScaleTrainException nearest = fails(InvalidArgument.class, Status.INVALID_ARGUMENT, () -> new Recipe(Map.of("learning_rat", 1)));
    assertTrue(nearest.getMessage().contains("learning_rat"), nearest.getMessage());
    try (Context context = new Context(); Model model = Nets.mlp(context); Trainer trainer = Nets.trainer(context)) {
      fails(NotFound.class, Status.NOT_FOUND, () -> model.get("nothing", Array.of(new float[1])));
      fails(WrongState.class, Status.WRONG_STATE, trainer::apply);
      assertEquals("no/such/file", fails(NotFound.class, Status.NOT_FOUND, () -> model.readFile(Path.of("no/such/file"))).file());
      Path damaged = folder.resolve("damaged.safetensors");
      model.writeFile(damaged);
      byte[] bytes = Files.readAllBytes(damaged);
      bytes[8] = '!';
      Files.write(damaged, bytes);
      ScaleTrainException corrupt = fails(CheckpointError.class, Status.CORRUPT, () -> model.readFile(damaged));
      assertEquals(damaged.toString(), corrupt.file());
    }
    try (Context small = new Context(new ContextOptions().memoryLimit(1 << 12))) {
      fails(OutOfMemory.class, Status.OUT_OF_MEMORY, () -> new Tensor(small, DType.F32, 1 << 20));
    }
  }

  @Test
  void whatIsNotFiniteIsFound() {
    try (Context context = new Context(); Trainer trainer = new Trainer(Nets.mlp(context), Nets.recipe().findNan(true))) {
      Batch batch = Nets.batch();
      batch.get("x").floats().put(3, Float.NaN);
      ScaleTrainException found = fails(NotFinite.class, Status.NOT_FINITE, () -> trainer.step(batch));
      assertTrue(found.step() >= 0 || found.tensor() != null, found.getMessage() + found.step() + found.tensor());
    }
  }

  @Test
  void whatIsUnknownIsNullOrMinusOne() {
    ScaleTrainException failure = assertThrows(InvalidArgument.class, () -> new Recipe("{"));
    assertNull(failure.host());
    assertNull(failure.collective());
    assertEquals(-1, failure.rank());
    assertEquals(-1, failure.step());
  }

  @Test
  void textsCrossWholeBothWays() {
    String name = "größe 重み \uD83D\uDE80 \u0001";
    try (Context context = new Context(); Graph graph = new Graph(context)) {
      Value w = graph.parameter(name, Init.ONES, 0, 2);
      graph.loss(Ops.sum(w.add(Ops.sum(graph.input("x", Graph.BATCH, 1)))));
      Model model = new Model(graph, 1);
      assertEquals(name, model.parameters().get(0).name());
      ScaleTrainException failure = assertThrows(NotFound.class, () -> model.get(name + "!", Array.of(new float[2])));
      assertTrue(failure.getMessage().contains(name + "!"), failure.getMessage());
      assertEquals(StandardCharsets.UTF_8.newEncoder().canEncode(failure.getMessage()), true);
      assertThrows(InvalidArgument.class, () -> model.get(name + "\0 and more", Array.of(new float[2])));
      assertThrows(ScaleTrainException.class, () -> model.get("half a pair: \uD83D", Array.of(new float[2])));
    }
  }

  @Test
  void anExceptionCanBeSentElsewhere() throws Exception {
    ScaleTrainException failure = assertThrows(InvalidArgument.class, () -> new Recipe("{"));
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
      out.writeObject(failure);
    }
    try (ObjectInputStream in = new ObjectInputStream(new ByteArrayInputStream(bytes.toByteArray()))) {
      ScaleTrainException arrived = (ScaleTrainException) in.readObject();
      assertEquals(failure.getMessage(), arrived.getMessage());
      assertEquals(failure.status(), arrived.status());
    }
  }

  /** Objects and a call of each. */
  private static Map<Handle, Executable> everyKind(Context context) {
    Graph graph = new Graph(context);
    Model model = Nets.mlp(context);
    Trainer trainer = Nets.trainer(context);
    Predictor predictor = new Predictor(model);
    Recipe recipe = new Recipe();
    Schedule schedule = new Schedule(Map.of("lr", 1));
    Data data = Data.arrays(context, Nets.batch());
    Tensor tensor = new Tensor(context, DType.F32, 2);
    LossScaler scaler = new LossScaler(context);
    Optimizer optimizer = new Optimizer(context, Nets.batch(), Map.of());
    Accumulator accumulator = new Accumulator(context, 1, Array.allocate(DType.F32, 2));
    Gemm gemm = new Gemm(context, new GemmProblem(2, 2, 2));
    PackedMatrix packed = gemm.pack(Array.of(new float[4], 2, 2));
    Map<Handle, Executable> all = new LinkedHashMap<>();
    all.put(graph, () -> graph.input("x", 1));
    all.put(model, model::digest);
    all.put(trainer, () -> trainer.step(Nets.batch()));
    all.put(predictor, predictor::refresh);
    all.put(recipe, recipe::json);
    all.put(schedule, () -> schedule.at(0));
    all.put(data, data::rows);
    all.put(tensor, tensor::array);
    all.put(scaler, scaler::scale);
    all.put(optimizer, () -> optimizer.step());
    all.put(accumulator, () -> accumulator.add(1));
    all.put(packed, () -> packed.repack(Array.of(new float[4], 2, 2)));
    all.put(gemm, gemm::info);
    all.put(context, context::memory);
    return all;
  }

  @Test
  void aClosedObjectSaysSo() {
    Map<Handle, Executable> all = everyKind(new Context());
    all.forEach((object, call) -> {
      object.close();
      object.close();
      InvalidHandle refusal = assertThrows(InvalidHandle.class, call, object.getClass().getName());
      assertEquals(Status.INVALID_HANDLE, refusal.status());
    });
    // Closed objects as arguments.
    Context closed = new Context();
    Model model = Nets.mlp(closed);
    Graph graph = new Graph(closed);
    closed.close();
    assertThrows(InvalidHandle.class, () -> new Graph(closed));
    assertThrows(InvalidHandle.class, () -> new Tensor(closed, DType.F32, 1));
    graph.close();
    assertThrows(InvalidHandle.class, () -> new Model(graph, 1));
    Recipe recipe = new Recipe();
    recipe.close();
    assertThrows(InvalidHandle.class, () -> new Trainer(model, recipe));
    model.close();
    assertThrows(InvalidHandle.class, () -> new Predictor(model));
  }

  @Test
  void nullIsRefusedWhereItIsNone() {
    try (Context context = new Context(); Graph graph = new Graph(context); Model model = Nets.mlp(context)) {
      List<Executable> calls = List.of(() -> new Graph(null), () -> new Model(null, 1), () -> new Trainer(null, new Recipe()),
          () -> new Trainer(model, null), () -> new Predictor(null), () -> Data.arrays(context, null), () -> graph.output("x", null),
          () -> graph.linear(null, graph.input("i", Graph.BATCH, 2), 2), () -> graph.parameter(null, 1), () -> model.get("w", null),
          () -> context.registerOp("op", null), () -> new Optimizer(context, null, Map.of()), () -> model.blend(null, 1),
          () -> new LossScaler(context).unscale((Array) null), () -> Optimizer.clipNorm(context, 1, (Array[]) null));
      for (Executable call : calls) assertThrows(RuntimeException.class, call);
    }
  }

  @Test
  void valuesStayInTheirGraph() {
    try (Context context = new Context(); Graph one = new Graph(context); Graph other = new Graph(context)) {
      Value x = one.input("x", Graph.BATCH, 2), y = other.input("y", Graph.BATCH, 2);
      assertThrows(InvalidArgument.class, () -> x.add(y));
      assertThrows(InvalidArgument.class, () -> other.loss(x));
      ScaleTrainException shapes = assertThrows(InvalidArgument.class, () -> Ops.matmul(x, x));
      assertEquals("matmul", shapes.op());
      assertThrows(ScaleTrainException.class, () -> one.op("no_such_op", x));
      assertThrows(InvalidArgument.class, () -> one.op("softmax", List.of(x), Map.of("axis", new Object())));
    }
  }

  @Test
  void aThousandErrorsLeaveNothing() {
    try (Context context = new Context(); Graph graph = new Graph(context)) {
      Value x = graph.input("x", Graph.BATCH, 2);
      long before = Library.liveHandles();
      for (int i = 0; i < 1000; ++i) {
        assertThrows(InvalidArgument.class, () -> Ops.matmul(x, x));
        assertThrows(InvalidArgument.class, () -> new Recipe("{"));
      }
      assertEquals(before, Library.liveHandles());
    }
  }

  @Test
  void theEnumsAreTheLibrarys() throws Exception {
    for (Class<? extends Enum<?>> kind : List.of(Activation.class, GemmOrder.class, GemmPacking.class, GemmSource.class, GemmLibrary.class,
             Init.class, LogLevel.class, Status.class)) {
      Class<?> numbers = Class.forName("org.scaletrain.internal." + kind.getSimpleName());
      int count = 0;
      for (var field : numbers.getFields()) {
        String name = field.getName().toUpperCase(java.util.Locale.ROOT);
        assertEquals(name, kind.getEnumConstants()[field.getInt(null)].name());
        ++count;
      }
      assertEquals(kind.getEnumConstants().length, count, kind.getName());
    }
    for (DType dtype : DType.values()) {
      String name = dtype == DType.BOOL ? "boolean" : dtype.toString();
      int number = 1 + dtype.ordinal();
      assertEquals(number, numberOf(name));
      assertEquals(dtype, new Tensor(new Context(), dtype, 2).array().dtype());
      assertEquals(dtype, new GemmLayout(dtype).dtype());
    }
  }

  private static int numberOf(String dtype) throws ReflectiveOperationException {
    for (var field : Class.forName("org.scaletrain.internal.DType").getFields())
      if (field.getName().replaceAll("^_", "").equals(dtype)) return field.getInt(null);
    throw new NoSuchFieldException(dtype);
  }

  @Test
  void jsonGoesBothWays() {
    Map<String, Object> value = new LinkedHashMap<>();
    value.put("text", "a \"b\" \\ \n größe \uD83D\uDE80");
    value.put("whole", 1L << 60);
    value.put("real", 1e-300);
    value.put("list", List.of(1L, true, "x"));
    value.put("none", null);
    value.put("empty", Map.of());
    assertEquals(value, Json.parse(Json.text(value)));
    assertEquals("[1,2]", Json.text(new long[] {1, 2}));
    assertThrows(InvalidArgument.class, () -> Json.text(Double.NaN));
    for (String wrong : List.of("", "{", "[1,", "\"", "tru", "1 2", "{\"a\" 1}", "\"\\u12", "nul", "-"))
      assertThrows(InvalidArgument.class, () -> Json.parse(wrong), wrong);
    assertEquals(value, Json.parse(" " + Json.text(value) + "\n"));
    assertTrue(Json.parse(Library.features()) instanceof Map);
  }

  @Test
  void recipesHaveEveryKeyTyped() {
    try (Recipe recipe =
             new Recipe().batch(64).lr(0.01).optimizer("sgd").nesterov(true).groups(List.of(Map.of("pattern", "*.bias", "lr_scale", 2)))) {
      assertEquals(64, recipe.batch());
      assertEquals(0.01, recipe.lr());
      assertEquals("sgd", recipe.optimizer());
      assertTrue(recipe.nesterov());
      assertEquals("*.bias", recipe.groups().get(0).get("pattern"));
      recipe.set("batch", "auto");
      assertThrows(WrongState.class, recipe::batch);
      assertEquals("auto", recipe.get("batch"));
      assertThrows(InvalidArgument.class, () -> recipe.lr(-1));
      assertEquals(Recipe.keys().size(), ((Map<?, ?>) Json.parse(recipe.json())).size());
    }
  }
}
