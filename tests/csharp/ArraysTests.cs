using System;
using NUnit.Framework;
using ScaleTrain;

/// <summary>Arrays are seen where they lie, or refused with name, dtype and a way out.</summary>
[TestFixture]
public unsafe class ArraysTests {
  private Context context;

  [SetUp] public void Begin() { context = new Context(new ContextOptions { Threads = 1 }); }
  [TearDown] public void End() { context.Dispose(); }

  [Test]
  public void ATensorOverAnArrayHasItsAddress() {
    var array = new float[] { 1, 2, 3, 4, 5, 6 };
    fixed (float* first = array) {
      using (Tensor tensor = Tensor.Wrap(context, View.Of(array, 2, 3))) {
        Assert.AreEqual((IntPtr)first, tensor.Address);
        Assert.AreEqual(new long[] { 2, 3 }, tensor.Dims);
        array[4] = 50;
        Assert.AreEqual(50, tensor.Memory<float>().Span[4]);
      }
    }
  }
}
