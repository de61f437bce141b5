using System;
using System.Buffers;
using System.Collections;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;
using System.Threading.Tasks;
using NUnit.Framework;
using ScaleTrain;

/// <summary>Calls that nobody should make end as exceptions that name the value; none crashes, hangs, holds on to arrays or does something else
/// without a word.</summary>
[TestFixture]
public class RefusalsTests {
  private Context context;

  [SetUp] public void Begin() { context = new Context(new ContextOptions { Threads = 1 }); }
  [TearDown] public void End() { context.Dispose(); }

  private static void IsRefused(string part, TestDelegate call) {
    StringAssert.Contains(part, Assert.Throws<InvalidArgumentException>(call).Message);
  }

  [Test]
  public void AStreamThatGivesTooMuchIsRefused() {
    using (Model model = Nets.Net(context)) {
      foreach (int count in new[] { -1, 65536, int.MaxValue }) {
        var caught = Assert.Throws<InvalidArgumentException>(() => model.Read(new Lying(count)));
        StringAssert.Contains(count.ToString(), caught.Message);
      }
      Assert.Catch<ScaleTrainException>(() => model.Read(new Lying(0)));
    }
  }

  private sealed class Lying : MemoryStream {
    private readonly int count;
    internal Lying(int count) { this.count = count; }
    public override int Read(byte[] buffer, int offset, int room) { return count; }
  }

  [Test]
  public void AListThatLiesAboutItsCountIsTakenAsItIs() {
    using (Model gpt = Model.Builtin(context, "gpt", 1, new { layers = 1, width = 16, heads = 2, context = 16, vocabulary = 32 }))
    using (var predictor = new Predictor(gpt)) {
      var one = new GenerateOptions { Tokens = 3 };
      Assert.AreEqual(predictor.Generate(new[] { 1, 2 }, one), predictor.Generate(new Counted<int>(1000000, 1, 2), one));
      Assert.AreEqual(predictor.Generate(new[] { 1, 2 }, one), predictor.Generate(new Counted<int>(1, 1, 2), one));
    }
    Assert.AreEqual(1, Data.RowsOf(context, 1, new Counted<Field>(100000, new Field("x", DType.F32, 1)), (rows, arrays) => {}).Rows);
  }

  private sealed class Counted<T> : IReadOnlyList<T> {
    private readonly T[] all;
    internal Counted(int count, params T[] all) {
      Count = count;
      this.all = all;
    }
    public int Count { get; }
    public T this[int i] { get { return all[i]; } }
    public IEnumerator<T> GetEnumerator() { return ((IEnumerable<T>)all).GetEnumerator(); }
    IEnumerator IEnumerable.GetEnumerator() { return GetEnumerator(); }
  }

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

  [Test]
  public void StridesThatReachBeyondAreRefused() {
    View four = new float[4];
    IsRefused("[2, 2, 2]", () => four.Strided(0, new long[] { 2, 2, 2 }, new[] { 1L << 62, 1L << 62, 1L << 62 }));
    IsRefused("[2, 2]", () => four.Strided(long.MaxValue, new long[] { 2, 2 }, new[] { 1L, 1L }));
    IsRefused("[3]", () => four.Strided(0, new long[] { 3 }, new[] { long.MaxValue }));
    IsRefused("[2]", () => four.Strided(3, new long[] { 2 }, new[] { long.MinValue }));
    IsRefused("[1]", () => four.Strided(1L << 62, new long[] { 1 }, new[] { 1L }));
    IsRefused("[-1]", () => four.Strided(0, new long[] { -1 }, new[] { 1L }));
    IsRefused("[0]", () => four.Strided(5, new long[] { 0 }, new[] { 1L }));
  }

  [Test]
  public void DimsThatNoArrayHasAreRefused() {
    View four = new float[4];
    IsRefused("[-2, -2]", () => four.Reshape(-2, -2));
    IsRefused("[4294967296, 4294967296]", () => four.Reshape(1L << 32, 1L << 32));
    IsRefused("[9223372036854775807, 2]", () => View.At((IntPtr)64, DType.F32, long.MaxValue, 2));
    IsRefused("[4611686018427387904]", () => View.At((IntPtr)64, DType.F32, 1L << 62));
    IsRefused("[-1]", () => View.At((IntPtr)64, DType.F32, -1));
    IsRefused("rank 9", () => four.Reshape(1, 1, 1, 1, 1, 1, 1, 1, 4));
  }

  [Test]
  public void TextsThatUtf8CannotSayAreRefused() {
    const string half = "a\ud800b", ended = "a\0b";
    foreach (string text in new[] { half, ended }) {
      Assert.Throws<InvalidArgumentException>(() => Data.RowsOf(context, 1, new[] { new Field(text, DType.F32, 1) }, (rows, arrays) => {}));
      Assert.Throws<InvalidArgumentException>(() => new Batch().Add(text, new float[1]));
      Assert.Throws<InvalidArgumentException>(() => new Recipe(new Dictionary<string, object> { { "schedule", half } }));
      using (var graph = new Graph(context)) {
        Value x = graph.Input("x", DType.F32, Graph.Batch, 1);
        Assert.Throws<InvalidArgumentException>(() => graph.Input(text, DType.F32, 1));
        Assert.Throws<InvalidArgumentException>(() => graph.Op("softmax", new[] { x }, new Dictionary<string, object> { { text, 1 } }));
        Assert.Throws<InvalidArgumentException>(() => graph.Op("compare", new[] { x, x }, new Dictionary<string, object> { { "test", text } }));
      }
      using (Model model = Nets.Net(context)) Assert.Throws<InvalidArgumentException>(() => model.WriteFile(Path.GetTempPath() + text));
    }
  }

  [Test]
  public void OptionsThatJsonCannotSayAreRefused() {
    var round = new Dictionary<string, object>();
    round["inner"] = new object[] { round };
    IsRefused("deep", () => new Recipe(round));
    IsRefused("7", () => new Recipe(new Dictionary<int, object> { { 7, 1 } }));
    IsRefused("NaN", () => new Recipe(new { lr = double.NaN }));
    using (var recipe = new Recipe()) {
      Assert.Throws<InvalidArgumentException>(() => recipe.Set("optimizer", 'a'));
      Assert.Throws<InvalidArgumentException>(() => recipe.Set("lr", DateTime.Now));
      Assert.Throws<InvalidArgumentException>(() => recipe.Set("lr", new Raw()));
    }
    IDictionary<string, object> expando = new System.Dynamic.ExpandoObject();
    expando["batch"] = 7;
    using (var recipe = new Recipe(expando)) Assert.AreEqual(7, recipe.Get("batch"));
    Assert.Catch<ScaleTrainException>(() => new Recipe(new string('[', 1000000)));
  }

  private sealed class Raw : IFormattable {
    public string ToString(string format, IFormatProvider provider) { return "1,\"batch\":5"; }
  }

  [Test]
  public void TimesMayBeOfAnyLength() {
    using (Trainer trainer = Nets.Of(context)) {
      Batch batch = Nets.Sine();
      Assert.AreEqual(1, trainer.Advance(TimeSpan.MaxValue, batch).Value.Step);
      StepReport? report = null;
      while (report == null) report = trainer.Advance(TimeSpan.MinValue, batch);
      Assert.AreEqual(2, report.Value.Step);
      Assert.AreEqual(3, trainer.Advance(TimeSpan.FromDays(150000), batch).Value.Step);
    }
    string path = Path.GetTempFileName();
    try {
      using (Model model = Model.Builtin(context, "mlp", 1, new { hidden = new[] { 3000, 3000 } })) {
        foreach (TimeSpan most in new[] { TimeSpan.MaxValue, Timeout.InfiniteTimeSpan, TimeSpan.FromDays(150000) })
          using (Pending pending = model.BeginWriteFile(path)) Assert.True(pending.Wait(most), most.ToString());
        using (Pending pending = model.BeginWriteFile(path)) {
          pending.Wait(TimeSpan.MinValue);
          pending.Wait();
        }
      }
    } finally { File.Delete(path); }
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
    Assert.LessOrEqual(all.Count(one => one.IsAlive), 3);  // the last ones may still be seen on the stack
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

  /// <summary>Memory of a program's that cannot be unpinned, or not pinned.</summary>
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
        for (int i = 0; i < 30; ++i) {
          var trainer = new Trainer(model, recipe);
          using (var begun = new ManualResetEventSlim()) {
            Task forward = Task.Run(() => {
              begun.Set();
              try { trainer.Forward(batch); } catch (InvalidHandleException) {}
            });
            begun.Wait();
            Thread.Sleep(i);
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
    for (int i = 0; i < 2000; ++i) {
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

  private sealed class Odd : IHostOp {
    internal OpType[] Types;
    public OpType[] Shape(OpType[] inputs) { return Types; }
    public void Forward(Lent[] inputs, Lent[] outputs) {}
  }

  [Test]
  public void AnOpsShapeThatCannotBeIsRefused() {
    var op = new Odd();
    context.RegisterOp("odd", op);
    var types = new[] { null, new OpType[0], new OpType[1], new[] { new OpType((DType)99, 1) }, new[] { new OpType(DType.F32, 1, 1, 1, 1, 1, 1, 1, 1, 1) },
                        new[] { new OpType(DType.F32, long.MaxValue, long.MaxValue) }, new[] { new OpType(DType.F32, 1), new OpType(DType.F32, 1) } };
    using (var graph = new Graph(context)) {
      Value x = graph.Input("x", DType.F32, Graph.Batch, 1);
      foreach (OpType[] wrong in types) {
        op.Types = wrong;
        IsNoDefect(() => graph.Op("odd", x));
      }
      foreach (int results in new[] { -1, 0, 2, int.MinValue, int.MaxValue }) IsRefused(results.ToString(), () => graph.Op("neg", new[] { x }, null, results));
    }
    foreach (int outputs in new[] { -1, 0, int.MinValue, int.MaxValue }) IsRefused(outputs.ToString(), () => context.RegisterOp("many", op, outputs));
  }

  private static void IsNoDefect(TestDelegate call) { Assert.AreNotEqual(Status.Internal, Assert.Catch<ScaleTrainException>(call).Status); }

  [Test]
  public void NumbersThatCannotBeAreRefused() {
    using (var graph = new Graph(context))
    using (Model model = Nets.Net(context))
    using (Data data = Data.Arrays(context, Nets.Sine()))
    using (Trainer trainer = Nets.Of(context, data), asked = Nets.Of(context, data))
    using (var sums = new Accumulator(context, 1, new float[1])) {
      FillFunction fill = (rows, arrays) => {};
      var calls = new TestDelegate[] {
        () => new Context(new ContextOptions { Threads = -1 }),
        () => new Context(new ContextOptions { Threads = int.MaxValue }),
        () => new Context(new ContextOptions { MemoryLimit = -1 }),
        () => new Tensor(context, (DType)0, 1),
        () => new Tensor(context, DType.F32, -1),
        () => new Tensor(context, DType.F32, long.MaxValue, long.MaxValue),
        () => new Tensor(context, DType.F32, 1, 1, 1, 1, 1, 1, 1, 1, 1),
        () => Tensor.Wrap(context, View.At(IntPtr.Zero, DType.F32, 4)),
        () => Tensor.FromDlpack(context, IntPtr.Zero),
        () => new Gemm(context, -1, 1, 1),
        () => new Gemm(context, 1L << 32, 1L << 32, 1),
        () => new LossScaler(context, new LossScalerOptions { InitialScale = double.NaN }),
        () => new LossScaler(context, new LossScalerOptions { GrowthInterval = -1 }),
        () => sums.Add(double.NaN),
        () => sums.Add(-1),
        () => context.ClipNorm(double.NaN, new float[1]),
        () => new Schedule(new { lr = 1 }).At(-1),
        () => Data.RowsOf(context, -1, new[] { new Field("x", DType.F32, 1) }, fill),
        () => Data.RowsOf(context, 1, new Field[1], fill),
        () => Data.RowsOf(context, 1, new[] { new Field("x", (DType)77, 1) }, fill),
        () => data.Split(double.NaN, 0, out Data training, out Data validation),
        () => trainer.Run(-1),
        () => asked.Step(),
        () => new Predictor(model, false, -1),
        () => model.Blend(model, double.NaN),
        () => graph.Input("x", (DType)99, 1),
        () => graph.Parameter("x", new[] { -5L }),
        () => graph.Parameter("x", new[] { 1L }, (Init)99),
        () => graph.Parameter("x", new[] { 1L << 40, 1L << 40 })
      };
      asked.SetSchedule(k => double.NaN);
      foreach (TestDelegate call in calls) IsNoDefect(call);
    }
  }
}
