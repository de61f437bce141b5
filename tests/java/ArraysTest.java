package org.scaletrain.tests;

import static org.junit.jupiter.api.Assertions.*;

import java.nio.*;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.scaletrain.*;
import org.scaletrain.internal.Native;

/** Arrays are used in place, or refused with a way out. */
class ArraysTest {
  static FloatBuffer direct(int count) {
    return ByteBuffer.allocateDirect(4 * count).order(ByteOrder.nativeOrder()).asFloatBuffer();
  }

  static InvalidArgument refused(String word, Executable call) {
    InvalidArgument refusal = assertThrows(InvalidArgument.class, call);
    assertTrue(refusal.getMessage().contains(word), refusal.getMessage());
    return refusal;
  }

  @Test
  void directMemoryIsSeenWhereItLies() {
    Array array = Array.allocate(DType.F32, 4, 2);
    long[] seen = Native.described(array);
    assertEquals(Native.address_of(array.floats()), seen[0]);
    assertEquals(array.address(), seen[0]);
    assertEquals(0, array.address() % 64);
    // dtype f32, rank, writable, dims
    assertArrayEquals(new long[] {1, 2, 1, 4, 2}, java.util.Arrays.copyOfRange(seen, 1, 6));
  }

  @Test
  void anArrayIsConvertedWhereThatIsAskedFor() {
    assertEquals(0.1F, Array.of(new double[] {0.1}, 1).to(DType.F32).floats().get(0));
    assertEquals(-3, Array.of(new long[] {7, -3}, 2, 1).to(DType.I32).ints().get(1));
    assertTrue(assertThrows(InvalidArgument.class, () -> Array.of(new long[] {1L << 32}, 1).to(DType.I32)).getMessage().contains("element 0"));
  }

  @Test
  void aBufferCountsFromItsPositionToItsLimit() {
    FloatBuffer buffer = direct(10);
    Array part = Array.of(buffer.position(3).limit(7), 2, 2);
    assertEquals(Native.address_of(buffer) + 12, Native.described(part)[0]);
    buffer.clear();
    buffer.put(3, 42);
    assertEquals(42, part.floats().get(0));
    assertEquals(4, part.size());
    ByteBuffer bytes = ByteBuffer.allocateDirect(32).order(ByteOrder.nativeOrder());
    Array ints = Array.of(DType.I32, bytes.position(8), 6);
    assertEquals(Native.address_of(bytes) + 8, ints.address());
  }

  @Test
  void whatACallWritesComesBackIntoJavasOwnArrays() {
    try (Context context = new Context(); Model model = Nets.mlp(context); Predictor predictor = new Predictor(model)) {
      Array direct = Array.allocate(DType.F32, 2, 1);
      float[] out = new float[2];
      Batch inputs = Batch.of("x", Array.of(new float[] {1, 2}, 2, 1));
      predictor.run(inputs, Batch.of("prediction", direct));
      predictor.run(inputs, Batch.of("prediction", Array.of(out, 2, 1)));
      assertArrayEquals(direct.toFloats(), out);
      assertFalse(out[0] == 0);

      String name = model.parameters().get(0).name();
      double[] values = new double[(int) model.parameters().get(0).type().size()];
      model.get(name, Array.of(values, model.parameters().get(0).type().dims()));
      assertEquals((double) model.get(name).toFloats()[0], values[0]);

      LossScaler scaler = new LossScaler(context, new LossScalerOptions().initialScale(4));
      assertEquals(4, scaler.scale());
      float[] gradient = {4, 8};
      assertTrue(scaler.unscale(Array.of(gradient)));
      assertArrayEquals(new float[] {1, 2}, gradient);
      assertEquals(Math.sqrt(5), Optimizer.clipNorm(context, 1, Array.of(gradient)), 1e-6);
      assertEquals(1, gradient[0] * gradient[0] + gradient[1] * gradient[1], 1e-5);

      float[] c = new float[1];
      new Gemm(context, new GemmProblem(1, 1, 2))
          .run(Array.of(new float[] {1, 2}, 1, 2), Array.of(new float[] {3, 4}, 2, 1), Array.of(c, 1, 1));
      assertEquals(11, c[0]);
    }
  }

  @Test
  void aPartOfAJavaArrayIsWrittenAlone() {
    try (Context context = new Context(); LossScaler scaler = new LossScaler(context, new LossScalerOptions().initialScale(2))) {
      assertEquals(2, scaler.scale());
      float[] all = {2, 2, 2, 2};
      scaler.unscale(Array.of(FloatBuffer.wrap(all, 1, 2)));
      assertArrayEquals(new float[] {2, 1, 1, 2}, all);
    }
  }

  /** Every call: BadArraysTest. */
  @Test
  void whatIsHeldMustBeDirect() {
    try (Context context = new Context()) {
      refused("Array.allocate", () -> Data.arrays(context, Batch.of("w", Array.of(new float[4]))));
      Optimizer optimizer = new Optimizer(context, Batch.of("w", Array.allocate(DType.F32, 4)), Map.of());
      refused("direct buffer", () -> optimizer.keepCopies(Array.of(DType.BF16, new short[4])));
    }
  }

  @Test
  void anotherByteOrderIsRefused() {
    refused("BIG_ENDIAN", () -> Array.of(ByteBuffer.allocateDirect(16).asFloatBuffer()));
    refused("nativeOrder", () -> Array.of(DType.F32, ByteBuffer.allocateDirect(16)));
    refused("BIG_ENDIAN", () -> Array.of(DType.I64, ByteBuffer.allocate(16)));
    assertEquals(16, Array.of(DType.U8, ByteBuffer.allocateDirect(16)).size());  // bytes have no byte order
  }

  @Test
  void dimsMustBeTheMemorys() {
    refused("has 6 elements, but the memory holds 7", () -> Array.of(direct(7), 2, 3));
    refused("negative dimension", () -> Array.of(direct(4), -2, -2));
    refused("not a multiple", () -> Array.of(DType.F32, ByteBuffer.allocateDirect(7).order(ByteOrder.nativeOrder())));
    refused("at most 8, got 9", () -> Array.of(direct(1), 1, 1, 1, 1, 1, 1, 1, 1, 1));
    refused("ShortBuffer", () -> Array.of(DType.F32, new short[2]));
    assertThrows(Unsupported.class, () -> Array.allocate(DType.F64, 1L << 40));
  }

  @Test
  void aWrongArrayIsNamed() {
    try (Context context = new Context(); Trainer trainer = Nets.trainer(context)) {
      Batch good = Nets.batch();
      Batch wrong = Batch.of("x", Array.allocate(DType.F64, Nets.ROWS, 1), "y", good.get("y"));
      assertEquals("x", refused("x", () -> trainer.step(wrong)).tensor());
      refused("null", () -> Batch.of("x", null));
      refused("two arrays", () -> Batch.of("x", good.get("x"), "x", good.get("y")));
      assertThrows(NotFound.class, () -> good.get("z"));
      assertTrue(trainer.step(good).loss() > 0);
    }
  }

  /** Every call with read-only arrays: BadArraysTest. */
  @Test
  void readOnlyMemoryIsNeverWritten() {
    try (Context context = new Context(); LossScaler scaler = new LossScaler(context)) {
      scaler.scale();
      refused("is read-only", () -> scaler.unscale(Array.of(direct(4).asReadOnlyBuffer())));
    }
    assertThrows(java.nio.ReadOnlyBufferException.class, () -> Nets.batch().get("x").readOnly().floats().put(0, 1));
    refused("read-only buffer over a Java array", () -> Array.of(FloatBuffer.wrap(new float[2]).asReadOnlyBuffer()));
  }

  @Test
  void stridesAreFollowedAndChecked() {
    try (Context context = new Context(); Trainer dense = Nets.trainer(context); Trainer strided = Nets.trainer(context)) {
      Batch batch = Nets.batch();
      Array wide = Array.allocate(DType.F32, Nets.ROWS, 3);
      for (int i = 0; i < Nets.ROWS; ++i) wide.floats().put(3 * i, batch.get("x").floats().get(i));
      Array column = wide.strided(new long[] {Nets.ROWS, 1}, 3, 1);
      dense.step(batch);
      strided.step(Batch.of("x", column, "y", batch.get("y")));
      assertEquals(dense.digest(), strided.digest());
      refused("reaches element 24", () -> wide.strided(new long[] {Nets.ROWS + 1, 1}, 3, 1));
      refused("0 or more", () -> wide.strided(new long[] {2, 1}, -1, 1));
      refused("needs 2 strides", () -> wide.strided(new long[] {2, 1}, 1));
      refused("strides", () -> column.reshape(Nets.ROWS));
      refused("strides", column::toFloats);
    }
  }

  @Test
  void sixteenBitsAreShorts() {
    try (Context context = new Context()) {
      short one = (short) (Float.floatToIntBits(1f) >>> 16);
      float[] c = new float[1];
      Array a = Array.of(DType.BF16, new short[] {one, one}, 1, 2), b = Array.of(DType.BF16, new short[] {one, one}, 2, 1);
      new Gemm(context, new GemmProblem(1, 1, 2).a(layout(DType.BF16)).b(layout(DType.BF16))).run(a, b, Array.of(c, 1, 1));
      assertEquals(2, c[0]);
      assertEquals(one, a.shorts().get(1));
      refused("not f32", () -> Array.of(new int[1]).floats());
    }
  }

  private static org.scaletrain.GemmLayout layout(DType dtype) {
    return new org.scaletrain.GemmLayout(dtype);
  }

  @Test
  void aTensorsMemoryStaysWhileItIsSeen() {
    FloatBuffer seen;
    try (Context context = new Context()) {
      Tensor tensor = new Tensor(context, DType.F32, 256);
      seen = tensor.array().floats();
      seen.put(255, 7);
      assertEquals(tensor.array().address(), tensor.array().address());
      tensor.close();
    }
    Nets.stress();
    assertEquals(7, seen.get(255));
    seen.put(0, 1);  // the array still belongs to the program
  }

  @Test
  void aTensorOverTheProgramsArrayIsThatArray() {
    try (Context context = new Context()) {
      Array array = Array.allocate(DType.I32, 4);
      array.ints().put(2, 9);
      Tensor tensor = Tensor.wrap(context, array);
      assertEquals(array.address(), tensor.array().address());
      Tensor other = Tensor.fromDlpack(context, tensor.toDlpack());
      tensor.close();
      array = null;
      Nets.stress();
      assertEquals(9, other.array().ints().get(2));
    }
  }

  @Test
  void aDlpackOfADeviceIsRefusedByName() {
    try (Context context = new Context()) {
      Array values = Array.allocate(DType.F32, 3), dims = Array.allocate(DType.I64, 1);
      dims.longs().put(0, 3);
      ByteBuffer managed = ByteBuffer.allocateDirect(64).order(ByteOrder.nativeOrder());  // a DLManagedTensor without a deleter
      managed.putLong(values.address()).putInt(2).putInt(0).putInt(1).put((byte) 2).put((byte) 32).putShort((short) 1);
      managed.putLong(dims.address());
      long pointer = Array.of(DType.U8, managed.rewind()).address();
      String why = assertThrows(Unsupported.class, () -> Tensor.fromDlpack(context, pointer)).getMessage();
      assertTrue(why.contains("kDLCUDA (2); allowed is the host's memory"), why);
      managed.putInt(8, 3);  // pinned
      try (Tensor tensor = Tensor.fromDlpack(context, pointer)) {
        assertEquals(values.address(), tensor.array().address());
        assertEquals(0, tensor.array().device());
      }
    }
  }

  @Test
  void anOptimizersStateStaysWhileItIsSeen() {
    long before = org.scaletrain.Library.liveHandles("optimizer");
    FloatBuffer seen = stateOfAClosedOptimizer();
    Nets.stress();
    assertTrue(seen.get(0) != 0);
    seen.put(0, 3);
    assertEquals(before + 1, org.scaletrain.Library.liveHandles("optimizer"));
    seen = null;
    Nets.collectUntil("the optimizer goes with its last buffer", () -> org.scaletrain.Library.liveHandles("optimizer") == before);
  }

  private static FloatBuffer stateOfAClosedOptimizer() {
    Context context = new Context();
    Optimizer optimizer = new Optimizer(context, Batch.of("w", Nets.filled(1024, 1)), Map.of("optimizer", "adamw"));
    optimizer.step(Nets.filled(1024, 1));
    Batch state = optimizer.state();
    FloatBuffer seen = state.get(state.names().stream().filter(name -> state.get(name).size() == 1024).findFirst().orElseThrow()).floats();
    optimizer.close();
    assertThrows(org.scaletrain.InvalidHandle.class, () -> optimizer.step(Nets.filled(1024, 1)));
    assertThrows(org.scaletrain.InvalidHandle.class, optimizer::state);
    return seen;
  }

  @Test
  void forwardGivesCopies() {
    try (Context context = new Context(); Trainer trainer = Nets.trainer(context)) {
      Array prediction = trainer.forward(Nets.batch()).get("prediction");
      float[] before = prediction.toFloats();
      trainer.backward(null);
      trainer.apply();
      trainer.step(Nets.batch());
      assertArrayEquals(before, prediction.toFloats());
    }
  }

  @Test
  void forwardIntoWritesTheCallersArrays() {
    try (Context context = new Context(); Trainer trainer = Nets.trainer(context)) {
      float[] wanted = trainer.forward(Nets.batch()).get("prediction").toFloats(), found = new float[Nets.ROWS];
      trainer.forwardInto(Nets.batch(), Batch.of("prediction", Array.of(found, Nets.ROWS, 1)));
      assertArrayEquals(wanted, found);
    }
  }
}
