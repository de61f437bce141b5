using System;
using System.Linq;
using NUnit.Framework;
using ScaleTrain;

/// <summary>Arrays in the memory of a device, on cuda-simulated, whose streams run late.</summary>
[TestFixture]
public class DeviceArraysTests {
  private static Context Opened(int index) { return new Context(new ContextOptions { Device = "cuda-simulated:" + index, Threads = 1 }); }

  private static Trainer Of(Context context) {
    using (var recipe = new Recipe { Batch = Nets.Rows, Lr = 0.01, Device = "cuda-simulated:1" }) return new Trainer(Nets.Net(context), recipe, null);
  }

  /// <summary>A model of one parameter "w" of rows, on which arrays go to the device and back.</summary>
  private static Model Rows(Context context) {
    using (var graph = new Graph(context)) {
      graph.Output("w", graph.Parameter("w", new long[] { Nets.Rows, 1 }, Init.Zeros));
      return new Model(graph, 1);
    }
  }

  private static View There(Context context, Tensor tensor, View values) {
    using (Model model = Rows(context)) {
      model.Set("w", values);
      model.Get("w", tensor.View());
    }
    return tensor.View();
  }

  [Test]
  public void AStepAndAPredictionOnArraysOfTheDeviceAreThoseOnTheHosts() {
    float[] x = Enumerable.Range(0, Nets.Rows).Select(i => i / 32.0f).ToArray(), y = x.Select(at => at * at).ToArray();
    using (Context context = Opened(1))
    using (Trainer byHost = Of(context), byDevice = Of(context))
    using (Tensor onX = new Tensor(context, DType.F32, Nets.Rows, 1), onY = new Tensor(context, DType.F32, Nets.Rows, 1), made = new Tensor(context, DType.F32, Nets.Rows, 1)) {
      View hostX = View.Of(x, Nets.Rows, 1), hostY = View.Of(y, Nets.Rows, 1);
      Assert.AreEqual(2, onX.Device);
      View thereX = There(context, onX, hostX), thereY = There(context, onY, hostY);
      Assert.AreEqual(2, thereX.Device);
      for (int i = 0; i < 3; ++i) {
        byHost.Step(new Batch { { "x", hostX }, { "y", hostY } });
        byDevice.Step(new Batch { { "x", View.At(onX.Address, DType.F32, Nets.Rows, 1).OnDevice(2) }, { "y", thereY } });
      }
      Assert.AreEqual(byHost.Digest(), byDevice.Digest());

      using (Model model = Nets.Net(context), back = Rows(context))
      using (var predictor = new Predictor(model)) {
        float[] wanted = new float[Nets.Rows], found = new float[Nets.Rows];
        predictor.Run(new Batch { { "x", hostX } }, new Batch { { "prediction", View.Of(wanted, Nets.Rows, 1) } });
        predictor.Run(new Batch { { "x", thereX } }, new Batch { { "prediction", made.View() } });
        back.Set("w", made.View());
        back.Get("w", View.Of(found, Nets.Rows, 1));
        Assert.AreEqual(wanted, found);
      }
    }
  }

  [Test]
  public void OutputsOfAnOwnLossAndTheirGradientsStayInTheDevicesMemory() {
    float[] x = Enumerable.Range(0, Nets.Rows).Select(i => i / 32.0f).ToArray(), wanted = new float[Nets.Rows], found = new float[Nets.Rows];
    using (Context context = Opened(1))
    using (Trainer byHost = Of(context), byDevice = Of(context))
    using (Tensor onX = new Tensor(context, DType.F32, Nets.Rows, 1), made = new Tensor(context, DType.F32, Nets.Rows, 1))
    using (Model back = Rows(context)) {
      View hostX = View.Of(x, Nets.Rows, 1);
      byHost.ForwardInto(new Batch { { "x", hostX } }, new Batch { { "prediction", View.Of(wanted, Nets.Rows, 1) } });
      byHost.Backward(new Batch { { "prediction", View.Of(wanted, Nets.Rows, 1) } });
      byDevice.ForwardInto(new Batch { { "x", There(context, onX, hostX) } }, new Batch { { "prediction", made.View() } });
      byDevice.Backward(new Batch { { "prediction", made.View() } });
      back.Set("w", made.View());
      back.Get("w", View.Of(found, Nets.Rows, 1));
      Assert.AreEqual(wanted, found);
      Assert.That(wanted, Has.Some.Not.EqualTo(0.0f));
      Assert.AreEqual(byHost.Apply().GradNorm, byDevice.Apply().GradNorm);
      Assert.AreEqual(byHost.Digest(), byDevice.Digest());
    }
  }

  [Test]
  public void ElementsOfADeviceCannotBeReadHere() {
    using (Context context = Opened(1))
    using (var tensor = new Tensor(context, DType.F32, 2, 3)) {
      Assert.Throws<UnsupportedException>(() => tensor.Memory<float>());
      Assert.Throws<UnsupportedException>(() => tensor.ToArray<float>());
    }
  }

  [Test]
  public void ADlpackGoesInTheOrderOfStreams() {
    using (Context context = Opened(1))
    using (var tensor = new Tensor(context, DType.F32, 4)) {
      Assert.AreEqual(1, context.Stream);
      using (Tensor other = Tensor.FromDlpack(context, tensor.ToDlpack(2), 2)) {
        Assert.AreEqual(tensor.Address, other.Address);
        Assert.AreEqual(2, other.Device);
      }
      context.Stream = -1;
      Assert.AreEqual(-1, context.Stream);
      StringAssert.Contains("0 is no stream", Assert.Throws<InvalidArgumentException>(() => context.Stream = 0).Message);
    }
  }

  [Test]
  public void AnotherDeviceIsRefusedWithBothNamed() {
    using (Context context = Opened(1), other = Opened(0))
    using (Trainer trainer = Of(context))
    using (var elsewhere = new Tensor(other, DType.F32, Nets.Rows, 1)) {
      Assert.AreEqual(1, elsewhere.Device);
      var batch = new Batch { { "x", elsewhere.View() }, { "y", elsewhere.View() } };
      StringAssert.Contains("device 1, but the context is on cuda-simulated:1; allowed is 2", Assert.Throws<InvalidArgumentException>(() => trainer.Step(batch)).Message);
    }
  }
}
