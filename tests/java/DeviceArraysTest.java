package org.scaletrain.tests;

import static org.junit.jupiter.api.Assertions.*;

import org.junit.jupiter.api.Test;
import org.scaletrain.*;

/** Arrays in the memory of a device, on cuda-simulated, whose streams run late. */
final class DeviceArraysTest {
  private static Context opened(int index) {
    return new Context(new ContextOptions().device("cuda-simulated:" + index).threads(1));
  }

  private static Recipe recipe() {
    return Nets.recipe().device("cuda-simulated:1");
  }

  private static Trainer trainer(Context context) {
    return new Trainer(Nets.mlp(context), recipe());
  }

  /** A model of one parameter "w" of rows, on which arrays go to the device and back. */
  private static Model rows(Context context) {
    try (Graph graph = new Graph(context)) {
      graph.output("w", graph.parameter("w", Init.ZEROS, 0, Nets.ROWS, 1));
      return new Model(graph, 1);
    }
  }

  private static Array there(Context context, Tensor tensor, Array values) {
    try (Model model = rows(context)) {
      model.set("w", values);
      model.get("w", tensor.array());
    }
    return tensor.array();
  }

  @Test
  void aStepAndAPredictionOnArraysOfTheDeviceAreThoseOnTheHosts() {
    float[] values = new float[Nets.ROWS], squares = new float[Nets.ROWS];
    for (int i = 0; i < Nets.ROWS; ++i) squares[i] = (values[i] = i / 4f) * values[i];
    Array x = Array.of(values, Nets.ROWS, 1), y = Array.of(squares, Nets.ROWS, 1);
    try (Context context = opened(1); Trainer byHost = trainer(context); Model model = Nets.mlp(context);
        Trainer byDevice = new Trainer(model, recipe()); Predictor predictor = new Predictor(model);
        Tensor onX = new Tensor(context, DType.F32, Nets.ROWS, 1); Tensor onY = new Tensor(context, DType.F32, Nets.ROWS, 1);
        Tensor made = new Tensor(context, DType.F32, Nets.ROWS, 1); Model back = rows(context)) {
      assertEquals(2, onX.device());
      Array thereX = there(context, onX, x), thereY = there(context, onY, y);
      assertEquals(2, thereX.device());
      assertArrayEquals(new long[] {Nets.ROWS, 1}, thereX.dims());
      for (int i = 0; i < 3; ++i) {
        byHost.step(Batch.of("x", x, "y", y));
        byDevice.step(Batch.of("x", thereX, "y", thereY));
      }
      assertEquals(byHost.digest(), byDevice.digest());

      float[] wanted = new float[Nets.ROWS], found = new float[Nets.ROWS];
      predictor.run(Batch.of("x", x), Batch.of("prediction", Array.of(wanted, Nets.ROWS, 1)));
      predictor.run(Batch.of("x", thereX), Batch.of("prediction", made.array()));
      back.set("w", made.array());
      back.get("w", Array.of(found, Nets.ROWS, 1));
      assertArrayEquals(wanted, found);
    }
  }

  @Test
  void outputsOfAnOwnLossAndTheirGradientsStayInTheDevicesMemory() {
    Array x = Nets.batch().get("x");
    try (Context context = opened(1); Trainer byHost = trainer(context); Trainer byDevice = trainer(context);
        Tensor onX = new Tensor(context, DType.F32, Nets.ROWS, 1); Tensor made = new Tensor(context, DType.F32, Nets.ROWS, 1);
        Model back = rows(context)) {
      Array wanted = byHost.forward(Batch.of("x", x)).get("prediction");
      byHost.backward(Batch.of("prediction", wanted));
      byDevice.forwardInto(Batch.of("x", there(context, onX, x)), Batch.of("prediction", made.array()));
      byDevice.backward(Batch.of("prediction", made.array()));
      float[] found = new float[Nets.ROWS];
      back.set("w", made.array());
      back.get("w", Array.of(found, Nets.ROWS, 1));
      assertArrayEquals(wanted.toFloats(), found);
      assertEquals(byHost.apply().gradNorm(), byDevice.apply().gradNorm());
      assertEquals(byHost.digest(), byDevice.digest());
    }
  }

  @Test
  void elementsOfADeviceCannotBeReadHere() {
    try (Context context = opened(1); Tensor tensor = new Tensor(context, DType.F32, 2, 3)) {
      Array array = tensor.array();
      assertThrows(Unsupported.class, array::floats);
      assertThrows(Unsupported.class, () -> array.reshape(6).toFloats());
      assertEquals(array.address(), Array.at(array.address(), 2, DType.F32, 2, 3).readOnly().address());
      assertThrows(InvalidArgument.class, () -> Array.at(array.address(), 0, DType.F32, 2, 3));
      String why = assertThrows(InvalidArgument.class, () -> array.onDevice(0)).getMessage();
      assertTrue(why.contains("device must be 1 or more, got 0"), why);
      assertEquals(1, array.onDevice(1).device());
    }
  }

  @Test
  void anArrayKeepsTheMemoryOfItsTensor() {
    try (Context context = opened(1)) {
      Tensor tensor = new Tensor(context, DType.F32, 1000);
      long before = context.memory().allocatedBytes();
      Array[] made = {tensor.array().reshape(10, 100)};
      tensor.close();
      Nets.stress();
      assertEquals(before, context.memory().allocatedBytes());
      assertEquals(2, made[0].device());
      made[0] = null;
      Nets.collectUntil("the memory goes with its last array", () -> context.memory().allocatedBytes() < before);
    }
  }

  @Test
  void anArrayOfAReadOnlyOneIsReadOnly() {
    try (Context context = opened(1); Tensor tensor = new Tensor(context, DType.F32, 4);
        Tensor wrapped = Tensor.wrap(context, tensor.array().readOnly())) {
      assertTrue(wrapped.array().isReadOnly());
      assertThrows(InvalidArgument.class, wrapped::toDlpack);
    }
  }

  @Test
  void aDlpackGoesInTheOrderOfStreams() {
    try (Context context = opened(1); Tensor tensor = new Tensor(context, DType.F32, 4)) {
      assertEquals(1, context.stream());
      try (Tensor other = Tensor.fromDlpack(context, tensor.toDlpack(2), 2)) {
        assertEquals(tensor.array().address(), other.array().address());
        assertEquals(2, other.device());
      }
      context.useStream(-1);
      assertEquals(-1, context.stream());
      assertTrue(assertThrows(InvalidArgument.class, () -> context.useStream(0)).getMessage().contains("0 is no stream"));
    }
  }

  @Test
  void anotherDeviceIsRefusedWithBothNamed() {
    try (Context context = opened(1); Context other = opened(0); Trainer trainer = trainer(context);
        Tensor elsewhere = new Tensor(other, DType.F32, Nets.ROWS, 1)) {
      assertEquals(1, elsewhere.device());
      Batch batch = Batch.of("x", elsewhere.array(), "y", elsewhere.array());
      String why = assertThrows(InvalidArgument.class, () -> trainer.step(batch)).getMessage();
      assertTrue(why.contains("device 1, but the context is on cuda-simulated:1; allowed is 2"), why);
    }
  }
}
