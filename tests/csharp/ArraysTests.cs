using System;
using System.Linq;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using NUnit.Framework;
using ScaleTrain;

/// <summary>Arrays are used in place, or refused with name, dtype and a way out.</summary>
[TestFixture]
public unsafe class ArraysTests : OneThreadTests {
  private void IsSeenAt(IntPtr address, View view, DType dtype, params long[] dims) {
    using (Tensor tensor = Tensor.Wrap(context, view)) {
      Assert.AreEqual(address, tensor.Address);
      Assert.AreEqual(dtype, tensor.DType);
      Assert.AreEqual(dims, tensor.Dims);
    }
  }

  [Test]
  public void EveryKindOfArrayIsSeenWhereItLies() {
    var floats = new float[6];
    var doubles = new double[3];
    var ints = new int[2, 3];
    var longs = new long[1, 2, 3];
    var bytes = new byte[5];
    var bools = new bool[4];
    var bits = new ushort[8];
    fixed (float* at = floats) IsSeenAt((IntPtr)at, floats, DType.F32, 6);
    fixed (float* at = floats) IsSeenAt((IntPtr)at, View.Of(floats, 2, 3), DType.F32, 2, 3);
    fixed (double* at = doubles) IsSeenAt((IntPtr)at, doubles, DType.F64, 3);
    fixed (int* at = &ints[0, 0]) IsSeenAt((IntPtr)at, ints, DType.I32, 2, 3);
    fixed (long* at = &longs[0, 0, 0]) IsSeenAt((IntPtr)at, longs, DType.I64, 1, 2, 3);
    fixed (byte* at = bytes) IsSeenAt((IntPtr)at, bytes, DType.U8, 5);
    fixed (bool* at = bools) IsSeenAt((IntPtr)at, bools, DType.Bool, 4);
    fixed (ushort* at = bits) IsSeenAt((IntPtr)at, View.Bf16(bits, 4, 2), DType.Bf16, 4, 2);
    fixed (ushort* at = bits) IsSeenAt((IntPtr)at, View.F16(bits), DType.F16, 8);
  }

  [Test]
  public void MemoryIsSeenWhereItLies() {
    var floats = new float[10];
    fixed (float* at = floats) {
      IsSeenAt((IntPtr)(at + 2), floats.AsMemory(2, 6), DType.F32, 6);
      IsSeenAt((IntPtr)(at + 2), View.Of(floats.AsMemory(2, 6), 3, 2), DType.F32, 3, 2);
      IsSeenAt((IntPtr)(at + 4), View.At((IntPtr)(at + 4), DType.F32, 2, 2), DType.F32, 2, 2);
    }
  }

  [Test]
  public void ATensorsMemoryIsTheArrays() {
    var array = new float[] { 1, 2, 3, 4, 5, 6 };
    using (Tensor tensor = Tensor.Wrap(context, array)) {
      array[4] = 50;
      Memory<float> memory = tensor.Memory<float>();
      Span<float> span = memory.Span;
      Assert.AreEqual(50, span[4]);
      span[0] = -1;
      Assert.AreEqual(-1, array[0]);
      GC.KeepAlive(memory);
    }
  }

  [Test]
  public void TheLibrarysMemoryStaysWhileItIsHeld() {
    Memory<float> memory;
    using (var tensor = new Tensor(context, DType.F32, 1000)) memory = tensor.Memory<float>();
    Nets.Collect();
    memory.Span.Fill(3);
    Assert.AreEqual(3000, memory.ToArray().Sum());
    long before = Library.LiveHandles("tensor");
    memory = default(Memory<float>);
    Deep(() => {});
    Nets.Collect();
    Assert.LessOrEqual(Library.LiveHandles("tensor"), before);
  }

  private static void Deep(Action work) { work(); }

  [Test]
  public void ATensorIsAnArrayOfCalls() {
    using (var tensor = new Tensor(context, DType.F32, 2, 2))
    using (var gemm = new Gemm(context, 2, 2, 2)) {
      gemm.Run(new float[,] { { 1, 2 }, { 3, 4 } }, new float[,] { { 1, 0 }, { 0, 1 } }, tensor);
      Assert.AreEqual(new float[] { 1, 2, 3, 4 }, tensor.ToArray<float>());
      View view = tensor;
      tensor.Dispose();
      Assert.Throws<InvalidHandleException>(() => gemm.Run(new float[2, 2], new float[2, 2], view));
    }
  }

  [Test]
  public void DlpackIsTheSameMemory() {
    var array = new float[] { 1, 2, 3 };
    using (Tensor first = Tensor.Wrap(context, array)) {
      IntPtr managed = first.ToDlpack();
      using (Tensor second = Tensor.FromDlpack(context, managed)) {
        Assert.AreEqual(first.Address, second.Address);
        first.Dispose();
        Nets.Collect();
        Assert.AreEqual(array, second.ToArray<float>());
      }
    }
    Assert.Throws<InvalidArgumentException>(() => Tensor.FromDlpack(context, IntPtr.Zero));
  }

  [Test]
  public void ADlpackOfADeviceIsRefusedByName() {
    using (var tensor = new Tensor(context, DType.F32, 3)) {
      IntPtr managed = tensor.ToDlpack();
      Marshal.WriteInt32(managed, 8, 2);  // device_type
      StringAssert.Contains("kDLCUDA (2); allowed is the host's memory", Assert.Throws<UnsupportedException>(() => Tensor.FromDlpack(context, managed)).Message);
      Marshal.WriteInt32(managed, 8, 3);  // pinned
      using (Tensor taken = Tensor.FromDlpack(context, managed)) Assert.AreEqual(tensor.Address, taken.Address);
    }
  }

  [Test]
  public void ATensorWithGapsIsNoView() {
    View column = View.Of(new float[6]).Strided(1, new long[] { 3, 1 }, new long[] { 2, 1 });
    using (Tensor tensor = Tensor.Wrap(context, column)) {
      Assert.AreEqual(new long[] { 3, 1 }, tensor.Dims);
      Assert.AreEqual(DType.F32, tensor.DType);
      foreach (Action call in new Action[] { () => tensor.View(), () => tensor.ToArray<float>(), () => tensor.Memory<float>() })
        StringAssert.Contains("row-major without gaps", Assert.Throws<UnsupportedException>(() => call()).Message);
    }
  }

  [Test]
  public void AViewOfADeviceIsRefused() {
    View host = new float[] { 1, 2, 3, 4 };
    Assert.AreEqual(0, host.Device);
    View there = host.OnDevice(1).Reshape(2, 2);
    Assert.AreEqual(1, there.Device);
    Assert.AreEqual(1, there.AsReadOnly().Strided(0, new long[] { 2, 2 }, new long[] { 1, 2 }).Device);
    const string said = "has device 1; allowed is 0, the host's memory";
    Refused(said, () => context.ClipNorm(1, there));
    Refused(said, () => Tensor.Wrap(context, there));
    Refused(said, () => there.To(DType.F64));
    Refused(said, () => there.AsReadOnly().To(DType.F64));
    using (var gemm = new Gemm(context, 2, 2, 2)) Refused(said, () => gemm.Run(there, new float[2, 2], new float[2, 2]));
    Assert.AreEqual(0, there.OnDevice(0).To(DType.F64).Device);
  }

  [Test]
  public void WhatIsNoArrayOfOursIsRefused() {
    Refused("Int16, which has no dtype", () => View.Of(new short[3]));
    Refused("UInt16, which has no dtype; use float, double, int, long, byte or bool; for bf16 and f16 pass their bits: View.Bf16", () => View.Of(new ushort[3]));
    Refused("String", () => View.Of(new[] { "a" }));
    Refused("[2, 2] has 4 elements, the array [3] has 3", () => View.Of(new float[3], 2, 2));
    Refused("at most 8, got 9", () => View.Of(new float[1], 1, 1, 1, 1, 1, 1, 1, 1, 1));
    Refused("an array is null", () => View.Of(null));
    Refused("reach beyond the array, which has 6 elements", () => View.Of(new float[6]).Strided(1, new long[] { 2, 3 }, new long[] { 3, 1 }));
    Refused("reach beyond the array", () => View.Of(new float[6]).Strided(0, new long[] { 3 }, new long[] { -1 }));
    Refused("F64, and cannot be accessed as Single", () => View.Of(new double[2]).As<float>());
    using (var tensor = new Tensor(context, DType.I64, 2)) Refused("I64, and cannot be accessed as Int32", () => tensor.Memory<int>());
  }

  [Test]
  public void AnArrayIsConvertedWhereThatIsAskedFor() {
    CollectionAssert.AreEqual(new[] { 0.1F, 2 }, View.Of(new[] { 0.1, 2 }).To(DType.F32).As<float>().ToArray());
    CollectionAssert.AreEqual(new[] { 7, -3 }, View.Of(new long[] { 7, -3 }, 2, 1).To(DType.I32).As<int>().ToArray());
    Refused("element 0 is 4294967296", () => View.Of(new[] { 1L << 32 }).To(DType.I32));
  }

  private static void Refused(string said, TestDelegate call) { StringAssert.Contains(said, Assert.Throws<InvalidArgumentException>(call).Message); }

  [Test]
  public void ABatchNamesTheArrayThatIsWrong() {
    using (Trainer trainer = Nets.Of(context)) {
      Batch good = Nets.Sine();
      Refused("\"y\"", () => trainer.Step(new Batch { { "x", good["x"] }, { "y", new double[Nets.Rows, 1] } }));
      Refused("\"y\"", () => trainer.Step(new Batch { { "x", good["x"] }, { "y", new float[Nets.Rows - 1, 1] } }));
      Refused("\"y\" is missing", () => trainer.Step(new Batch { { "x", good["x"] }, { "z", good["y"] } }));
      Refused("y is null", () => new Batch { { "y", (View)null } });
      Assert.AreEqual(1, trainer.Step(good).Step);
    }
  }

  [Test]
  public void ReadOnlyArraysAreReadAndNotWritten() {
    Batch good = Nets.Sine();
    var locked = new Batch(good.ToDictionary(pair => pair.Key, pair => pair.Value.AsReadOnly()));
    using (Trainer trainer = Nets.Of(context)) trainer.Step(locked);
    using (Model model = Nets.Net(context)) {
      string name = model.Parameters[0].Name;
      View target = View.Of(new float[1, 8]).AsReadOnly();
      Refused("is read-only", () => model.Get(name, target));
      Refused("is read-only", () => new Optimizer(context, new Batch { { "w", target } }, new { optimizer = "sgd" }));
      Refused("is read-only", () => context.ClipNorm(1, target));
      Refused("is read-only", () => new LossScaler(context).Unscale(target));
      using (var predictor = new Predictor(model))
        Refused("is read-only", () => predictor.Run(new Batch { { "x", good["x"] } }, new Batch { { "prediction", View.Of(new float[Nets.Rows, 1]).AsReadOnly() } }));
      View memory = new ReadOnlyMemory<float>(new float[8]);
      Assert.IsTrue(memory.IsReadOnly);
      Refused("is read-only", () => model.Get(name, memory.Reshape(1, 8)));
    }
  }

  [Test]
  public void ParametersGoInAndOutInSpans() {
    using (Model model = Nets.Net(context)) {
      ParameterInfo first = model.Parameters[0];
      var values = Enumerable.Range(0, (int)first.Size).Select(i => (float)i).ToArray();
      model.Set(first.Name, values.AsSpan());
      Span<float> back = new float[(int)first.Size];
      model.Get(first.Name, back);
      Assert.AreEqual(values, back.ToArray());
      Assert.AreEqual(values, model.Get(first.Name));
      Refused("8 elements, the span has 3", () => model.Get(first.Name, new float[3].AsSpan()));
    }
  }

  [Test]
  public void AnOptimizerWritesWhereTheParametersLieAlsoInCopiesAndState() {
    var w = new float[] { 1, 2, 3, 4 };
    var bits = new ushort[4];
    using (var optimizer = new Optimizer(context, new Batch { { "w", w } }, new { optimizer = "adamw", lr = 0.1, weight_decay = 0 })) {
      optimizer.KeepCopies(View.Bf16(bits));
      Assert.AreEqual(0x3f80, bits[0]);  // 1 in bf16
      OptimizerReport report = optimizer.Step(new float[] { 1, 1, 1, 1 });
      Assert.AreEqual(1, report.Step);
      Assert.Less(w[0], 0.95f);
      Assert.AreNotEqual(0x3f80, bits[0]);
      Memory<float> moment = optimizer.State()["moment1.w"].Memory<float>();
      Assert.AreEqual(0.1f, moment.Span[0], 1e-6);
      optimizer.Dispose();
      Nets.Collect();
      Assert.AreEqual(0.1f, moment.Span[3], 1e-6);
      GC.KeepAlive(moment);
    }
  }

  [Test]
  public void ProductsTakeSpans() {
    using (var gemm = new Gemm(context, 2, 2, 3)) {
      Span<float> a = new float[] { 1, 2, 3, 4, 5, 6 }, b = new float[] { 1, 0, 0, 1, 1, 1 }, c = new float[4];
      gemm.Run(a, b, c);
      Assert.AreEqual(new float[] { 4, 5, 10, 11 }, c.ToArray());
    }
    using (var gemm = new Gemm(context, 2, 2, 3)) Refused("b: [3, 2] needs a span of 6 elements, got 5", () => gemm.Run(new float[6].AsSpan(), new float[5].AsSpan(), new float[4].AsSpan()));
  }

  [Test]
  public void GapsAreTaken() {
    Batch good = Nets.Sine();
    var wide = new float[Nets.Rows * 5];
    for (int i = 0; i < Nets.Rows; ++i) wide[i * 5 + 2] = good["x"].As<float>()[i];
    View column = View.Of(wide).Strided(2, new long[] { Nets.Rows, 1 }, new long[] { 5, 1 });
    using (Trainer first = Nets.Of(context), second = Nets.Of(context))
      Assert.AreEqual(first.Step(good).Loss, second.Step(new Batch { { "x", column }, { "y", good["y"] } }).Loss);
  }

  [Test]
  public void PartsWriteWhereTheirArraysLie() {
    var gradients = new float[] { 3, 4 };
    Assert.AreEqual(5, context.ClipNorm(1, gradients), 1e-6);
    Assert.AreEqual(0.6f, gradients[0], 1e-6);
    using (var accumulator = new Accumulator(context, 1, gradients)) {
      accumulator.Add(2);
      Assert.IsTrue(accumulator.ShouldStep());
      Assert.AreEqual(2, accumulator.State()["weight"].ToArray<double>()[0]);
    }
    using (var scaler = new LossScaler(context, new LossScalerOptions { InitialScale = 8 })) {
      gradients[0] = (float)(2 * scaler.Scale);
      Assert.IsTrue(scaler.Unscale(gradients));
      Assert.AreEqual(2, gradients[0]);
    }
  }

  [Test]
  public void AHostsOwnLossTrains() {
    using (Model model = Nets.Net(context))
    using (Trainer trainer = Nets.Of(context)) {
      View prediction = trainer.Forward(Nets.Sine())["prediction"];
      Assert.AreEqual(new long[] { Nets.Rows, 1 }, prediction.Dims);
      trainer.Backward(new Batch { { "prediction", new float[Nets.Rows, 1] } });
      Assert.AreEqual(1, trainer.Apply().Step);
      string name = model.Parameters[0].Name;
      Assert.AreEqual(new float[8], trainer.Gradient(name));
      Assert.Throws<InvalidArgumentException>(() => trainer.Gradient(name, new float[9]));
    }
  }

  /// <summary>Backward reads the batch of Forward again, Advance its batch until the step is finished, and data its arrays whenever rows are read.</summary>
  [Test]
  public void WhatTheLibraryAloneHoldsStaysUnderAGarbageCollectorThatMovesAll() {
    Batch kept = Nets.Sine();
    using (Data held = Data.Arrays(context, kept))
    using (Trainer whole = Nets.Of(context), pairs = Nets.Of(context), slices = Nets.Of(context))
    using (Trainer over = Nets.Of(context, held), arrays = OverNothingKept(false), rows = OverNothingKept(true)) {
      over.SetSchedule(k => 0.25);
      for (int i = 0; i < 10; ++i) {
        whole.Step(kept);
        pairs.Forward(Nets.Sine());
        Litter();
        pairs.Backward();
        pairs.Apply();
        Batch batch = Nets.Sine();
        while (slices.Advance(TimeSpan.FromMilliseconds(0.001), batch) == null) Litter();
        double loss = over.Step().Loss;
        Assert.AreEqual(loss, arrays.Step().Loss);
        Assert.AreEqual(loss, rows.Step().Loss);
      }
      Assert.AreEqual(whole.Digest(), pairs.Digest());
      Assert.AreEqual(whole.Digest(), slices.Digest());
    }
    GC.KeepAlive(kept);
  }

  private static void Litter() {
    for (int i = 0; i < 200; ++i) GC.KeepAlive(new byte[1000]);
    GC.Collect();
  }

  /// <summary>A trainer whose data and callbacks only the library refers to.</summary>
  [MethodImpl(MethodImplOptions.NoInlining)]
  private Trainer OverNothingKept(bool isMade) {
    double rate = 0.25;
    Batch sine = Nets.Sine();
    Data data = !isMade ? Data.Arrays(context, sine) : Data.RowsOf(context, Nets.Rows, new[] { new Field("x", DType.F32, 1), new Field("y", DType.F32, 1) }, (ids, arrays) => {
      Span<float> x = arrays[0].Floats, y = arrays[1].Floats;
      for (int i = 0; i < ids.Length; ++i) {
        x[i] = sine["x"].As<float>()[(int)ids[i]];
        y[i] = sine["y"].As<float>()[(int)ids[i]];
      }
    });
    Trainer trainer = Nets.Of(context, data);
    trainer.SetSchedule(k => rate);
    return trainer;
  }
}
