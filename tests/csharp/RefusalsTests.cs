using System;
using System.Collections;
using System.Collections.Generic;
using System.IO;
using System.Threading;
using NUnit.Framework;
using ScaleTrain;

/// <summary>Wrong calls throw exceptions that name the value. None crashes or silently does something else.</summary>
[TestFixture]
public class RefusalsTests : OneThreadTests {
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
    IsRefused("at most 8, got 9", () => four.Reshape(1, 1, 1, 1, 1, 1, 1, 1, 4));
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

  private sealed class Odd : IHostOp {
    internal OpType[] Types;
    public OpType[] Shape(OpType[] inputs) { return Types; }
    public void Forward(BorrowedArray[] inputs, BorrowedArray[] outputs) {}
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
  public void DimsThatAProgramWritesToReachNoFurther() {
    int length = 0;
    using (Data data = Data.RowsOf(context, Nets.Rows, new[] { new Field("x", DType.F32, 1), new Field("y", DType.F32, 1) }, (rows, arrays) => {
      arrays[0].Dims[0] = 1 << 20;
      foreach (BorrowedArray array in arrays) array.Floats.Fill(1);
      length = arrays[0].Floats.Length;
    }))
    using (Trainer trainer = Nets.Of(context, data)) trainer.Step();
    Assert.AreEqual(Nets.Rows, length);
    using (var optimizer = new Optimizer(context, new Batch { { "w", new float[4] } })) {
      StateArray moment = optimizer.State()["moment1.w"];
      moment.Dims[0] = 1 << 20;
      Assert.AreEqual(4, moment.Memory<float>().Length);
      Assert.AreEqual(4, moment.ToArray<float>().Length);
    }
  }

  [Test]
  public void NullIsRefusedByTheArgumentsName() {
    IsRefused("dims is null", () => new Tensor(context, DType.F32, null));
    IsRefused("memory is null", () => Tensor.Wrap(context, null));
    IsRefused("model is null", () => new Predictor(null));
    IsRefused("recipe is null", () => new Trainer(Nets.Net(context), null));
    IsRefused("gradients[1] is null", () => new LossScaler(context).Unscale(new float[2], (View)null));
    Assert.Throws<InvalidArgumentException>(() => Ops.Add(null, null));
    var rename = new Dictionary<string, string> { { "ours", null } };
    using (Model model = Nets.Net(context)) IsRefused("\"ours\" is null", () => model.Read(new MemoryStream(), true, rename));
    using (var graph = new Graph(context)) {
      IsRefused("dims is null", () => graph.Input("x", DType.F32, null));
      Assert.Throws<InvalidArgumentException>(() => graph.Input(null, DType.F32, 1));
      IsRefused("dims is null", () => graph.Parameter("w", (long[])null));
    }
  }

  [Test]
  public void ABatchOfNoArraysIsNotTheData() {
    using (Trainer trainer = Nets.Of(context, Data.Arrays(context, Nets.Sine()))) {
      IsRefused("null", () => trainer.Step(new Batch()));
      IsRefused("null", () => trainer.Advance(TimeSpan.FromSeconds(1), new Batch()));
      trainer.Forward(Nets.Sine());
      IsRefused("null", () => trainer.Backward(new Batch()));
      trainer.Backward();
      Assert.AreEqual(1, trainer.Apply().Step);
    }
  }

  [Test]
  public void OptionsInJsonMayHaveSpaces() {
    using (var graph = new Graph(context)) {
      Value x = graph.Input("x", DType.F32, Graph.Batch, 3);
      Assert.AreEqual(new long[] { -1, 2 }, graph.Linear("empty", x, 2, " { } ").Dims);
      Assert.AreEqual(new long[] { -1, 2 }, graph.Linear("bare", x, 2, " { \"bias\" : false } ").Dims);
      IsRefused("outputs", () => graph.Linear("twice", x, 2, new { outputs = 5 }));
    }
  }
}
