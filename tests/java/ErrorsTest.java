package org.scaletrain.tests;

import static org.junit.jupiter.api.Assertions.*;

import java.io.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.*;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;
import org.scaletrain.*;

/** Each failure has its class, the library's complete message, and the known details. */
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
      String order = fails(WrongState.class, Status.WRONG_STATE, trainer::apply).getMessage();
      assertTrue(order.endsWith("call Trainer.forward and Trainer.backward first"), order);
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
  void textsCrossWholeBothWays() {
    String name = "größe 重み \uD83D\uDE80 \u0001";
    try (Context context = new Context(); Graph graph = new Graph(context)) {
      Value w = graph.parameter(name, Init.ONES, 0, 2);
      graph.loss(Ops.mean(w.add(graph.input("x", Graph.BATCH, 2))));
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
  void anExceptionCanBeSentElsewhereWithAllThatIsKnown() throws Exception {
    ScaleTrainException failure = assertThrows(InvalidArgument.class, () -> new Recipe("{"));
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    new ObjectOutputStream(bytes).writeObject(failure);
    ScaleTrainException arrived = (ScaleTrainException) new ObjectInputStream(new ByteArrayInputStream(bytes.toByteArray())).readObject();
    assertEquals(failure.getMessage(), arrived.getMessage());
    assertEquals(Status.INVALID_ARGUMENT, arrived.status());
    assertNull(arrived.host());
    assertNull(arrived.collective());
    assertEquals(-1, arrived.rank());
    assertEquals(-1, arrived.step());
  }

  @Test
  void aClosedObjectSaysSo() {
    Context context = new Context();
    Graph graph = new Graph(context);
    Model model = Nets.mlp(context);
    Recipe recipe = new Recipe();
    Tensor tensor = new Tensor(context, DType.F32, 2);
    Trainer trainer = Nets.trainer(context);
    Gemm gemm = new Gemm(context, new GemmProblem(2, 2, 2));
    PackedMatrix packed = gemm.pack(Array.of(new float[4], 2, 2));
    for (Handle object : List.of(packed, gemm, trainer, tensor, recipe, model, graph, context)) {
      object.close();
      object.close();
    }
    Map<Handle, Executable> calls = Map.of(packed, () -> packed.repack(Array.of(new float[4], 2, 2)), gemm, gemm::info, trainer,
        () -> trainer.step(Nets.batch()), tensor, tensor::array, recipe, recipe::json, model, model::digest, graph, () -> graph.input("x", 1),
        context, context::memory);
    List<Executable> all = new ArrayList<>(calls.values());
    all.addAll(List.of(() -> new Graph(context), () -> new Model(graph, 1), () -> new Trainer(model, new Recipe()), () -> new Predictor(model),
        () -> new Tensor(context, DType.F32, 1), trainer::cancel, trainer::stop, context::cancel));
    for (Executable call : all) {
      InvalidHandle refused = assertThrows(InvalidHandle.class, call);
      assertEquals(Status.INVALID_HANDLE, refused.status());
      assertTrue(refused.getMessage().contains("closed"), refused.getMessage());
    }
  }

  @Test
  void anOpIsNamed() {
    try (Context context = new Context(); Graph graph = new Graph(context)) {
      Value x = graph.input("x", Graph.BATCH, 2);
      assertEquals("matmul", assertThrows(InvalidArgument.class, () -> Ops.matmul(x, x)).op());
      assertThrows(InvalidArgument.class, () -> new Graph(context).loss(x));
      assertThrows(InvalidArgument.class, () -> graph.op("softmax", List.of(x), Map.of("axis", new Object())));
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
      for (Number value : List.of(Double.NaN, Float.NEGATIVE_INFINITY, new java.math.BigDecimal("1E+400")))
        assertEquals("recipe: lr must be a number in [0, inf), got " + value,
            assertThrows(InvalidArgument.class, () -> recipe.set("lr", value)).getMessage());
      java.math.BigInteger beyond = java.math.BigInteger.TWO.pow(64);
      assertEquals("recipe: seed must be a whole number in [0, 2^63), got " + beyond,
          assertThrows(InvalidArgument.class, () -> recipe.set("seed", beyond)).getMessage());
      assertEquals(Recipe.keys().size(), ((Map<?, ?>) Json.parse(recipe.json())).size());
    }
  }
}
