using System;
using System.Buffers;
using System.Collections.Generic;
using System.Linq;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;
using System.Threading.Tasks;
using NUnit.Framework;
using ScaleTrain;

/// <summary>Held arrays are released, even if calls fail or another thread changes or disposes their objects; none is released too early.</summary>
[TestFixture]
public class HoldingTests : OneThreadTests {
  [Test]
  public void ABatchMayGrowWhileAnotherThreadUsesIt() {
    var batch = new Batch();
    var name = new string('n', 4000);
    using (Trainer trainer = Nets.Of(context))
    using (var stop = new CancellationTokenSource()) {
      Task adds = Task.Run(() => {
        for (int i = 0; i < 3000 && !stop.IsCancellationRequested; ++i) batch.Add(name + i, new float[1]);
      });
      while (!adds.IsCompleted) Assert.Catch<ScaleTrainException>(() => trainer.Step(batch));
      adds.Wait();
    }
    Assert.AreEqual(3000, batch.Count);
  }

  [MethodImpl(MethodImplOptions.NoInlining)]
  private WeakReference[] Fresh(int count, Action<float[]> use) {
    return Enumerable.Range(0, count).Select(i => {
      var array = new float[Nets.Rows + 1];
      use(array);
      return new WeakReference(array);
    }).ToArray();
  }

  private void LetsGo(Action<float[]> use) {
    WeakReference[] all = Fresh(20, use);
    Nets.Collect();
    Assert.LessOrEqual(all.Count(one => one.IsAlive), 3);  // the stack may still refer to the last ones
  }

  [Test]
  public void ArraysThatWereRefusedAreLetGo() {
    LetsGo(array => Assert.Catch<ScaleTrainException>(() => Data.Arrays(context, new Batch { { "x", array }, { "y", new float[3] } })));
    LetsGo(array => Assert.Catch<ScaleTrainException>(() => Data.Arrays(context, new Batch { { "x", array }, { "x", array } })));
    LetsGo(array => Assert.Catch<ScaleTrainException>(() => new Optimizer(context, new Batch { { "x", array } }, new { nonsense = 1 })));
    LetsGo(array => Assert.Catch<ScaleTrainException>(() => new Accumulator(context, -1, array)));
    LetsGo(array => Assert.Catch<ScaleTrainException>(() => new Accumulator(context, 1, array, null)));
    using (var optimizer = new Optimizer(context, new Batch { { "w", new float[3] } })) LetsGo(array => Assert.Catch<ScaleTrainException>(() => optimizer.KeepCopies(array)));
    using (Trainer trainer = Nets.Of(context)) {
      LetsGo(array => Assert.Catch<ScaleTrainException>(() => trainer.Step(new Batch { { "x", array } })));
      LetsGo(array => Assert.Catch<ScaleTrainException>(() => trainer.Forward(new Batch { { "x", array } })));
      LetsGo(array => Assert.Catch<ScaleTrainException>(() => trainer.Advance(TimeSpan.FromSeconds(1), new Batch { { "x", array } })));
      trainer.Step(Nets.Sine());
    }
  }

  [Test]
  public void MemoryThatThrowsWhenItIsPinnedOrUnpinnedEndsNothingElse() {
    var never = View.Of(new Stuck(true).Memory, Nets.Rows, 1);
    var once = View.Of(new Stuck(false).Memory, Nets.Rows, 1);
    Assert.Throws<InvalidOperationException>(() => Tensor.Wrap(context, never));
    Assert.Throws<InvalidOperationException>(() => Data.Arrays(context, new Batch { { "x", never } }));
    Tensor.Wrap(context, once).Dispose();
    Data.Arrays(context, new Batch { { "x", once } }).Dispose();
    new Optimizer(context, new Batch { { "w", once } }).Dispose();
    using (Trainer trainer = Nets.Of(context)) {
      Assert.Throws<InvalidOperationException>(() => trainer.Step(new Batch { { "x", once }, { "y", never } }));
      LetsGo(array => Assert.Throws<InvalidOperationException>(() => trainer.Step(new Batch { { "x", once }, { "y", View.Of(array.AsMemory(0, Nets.Rows), Nets.Rows, 1) } })));
    }
  }

  /// <summary>Memory of the program whose unpinning or pinning throws.</summary>
  private sealed unsafe class Stuck : MemoryManager<float> {
    private readonly float[] array = new float[Nets.Rows];
    private readonly bool inPin;
    private GCHandle pin;
    internal Stuck(bool inPin) { this.inPin = inPin; }
    public override Span<float> GetSpan() { return array; }
    public override MemoryHandle Pin(int at = 0) {
      if (inPin) throw new InvalidOperationException("pin");
      pin = GCHandle.Alloc(array, GCHandleType.Pinned);
      return new MemoryHandle((float*)pin.AddrOfPinnedObject() + at, default(GCHandle), this);
    }
    public override void Unpin() {
      pin.Free();
      throw new InvalidOperationException("unpin");
    }
    protected override void Dispose(bool disposing) {}
  }

  [Test]
  public void ForwardsWithoutABackwardLetTheirBatchesGo() {
    using (Trainer trainer = Nets.Of(context)) {
      Batch y = Nets.Sine();
      LetsGo(array => {
        try { trainer.Forward(new Batch { { "x", View.Of(array.AsMemory(0, Nets.Rows), Nets.Rows, 1) }, { "y", y["y"] } }); } catch (WrongStateException) {}
      });
    }
  }

  [Test]
  public void OutputsAreCopiedAlsoWhenAnotherThreadDisposes() {
    long wide = 1 << 20;
    using (var graph = new Graph(context)) {
      Value x = graph.Input("x", DType.F32, Graph.Batch, 1);
      graph.Output("wide", Ops.Matmul(x, graph.Parameter("w", new[] { 1, wide })));
      using (var model = new Model(graph))
      using (var recipe = new Recipe { Batch = 8 }) {
        var batch = new Batch { { "x", new float[8], 8, 1 } };
        for (int i = 0; i < 12; ++i) {
          var trainer = new Trainer(model, recipe);
          using (var begun = new ManualResetEventSlim()) {
            Task forward = Task.Run(() => {
              begun.Set();
              try { trainer.Forward(batch); } catch (InvalidHandleException) {}
            });
            begun.Wait();
            Thread.Sleep(2 * i);
            trainer.Dispose();
            forward.Wait();
          }
        }
      }
    }
  }

  [Test]
  public void ATensorsMemoryOfADisposedOneIsRefusedAlsoInARace() {
    var others = new List<Exception>();
    for (int i = 0; i < (Nets.LongTrials ? 2000 : 400); ++i) {
      var tensor = new Tensor(context, DType.F32, 1000);
      Task reads = Task.Run(() => {
        try { for (;;) tensor.ToArray<float>(); } catch (InvalidHandleException) {} catch (Exception other) { lock (others) others.Add(other); }
      });
      Thread.SpinWait(i % 50 * 20);
      tensor.Dispose();
      reads.Wait();
    }
    Assert.AreEqual(new Exception[0], others.Take(2));
  }

  [Test]
  public void ACancelThatAnExceptionOvertookIsForgotten() {
    using (Trainer trainer = Nets.Of(context, Data.Arrays(context, Nets.Sine())))
    using (var source = new CancellationTokenSource()) {
      Task run = trainer.RunAsync(10, new Throws(source), source.Token);
      Assert.Catch<Exception>(() => run.GetAwaiter().GetResult());
      Assert.Greater(trainer.Step().Step, 0);
    }
  }

  private sealed class Throws : IProgress<StepReport> {
    private readonly CancellationTokenSource source;
    internal Throws(CancellationTokenSource source) { this.source = source; }
    public void Report(StepReport report) {
      source.Cancel();
      throw new InvalidOperationException("progress");
    }
  }
}
