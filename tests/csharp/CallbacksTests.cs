using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Runtime.CompilerServices;
using System.Threading;
using System.Threading.Tasks;
using NUnit.Framework;
using ScaleTrain;

/// <summary>Callbacks receive the right arguments, and their exceptions are rethrown unchanged.</summary>
[TestFixture]
public class CallbacksTests : OneThreadTests {
  private sealed class Mine : Exception {
    internal Mine(string message) : base(message) {}
  }

  private static void ArrivesAsItself(Exception thrown, TestDelegate call) {
    var caught = Assert.Throws<Mine>(call);
    Assert.AreSame(thrown, caught);
    StringAssert.Contains("ThrowIt", caught.StackTrace);  // the place that threw it, not the one that rethrew it
  }

  [MethodImpl(MethodImplOptions.NoInlining)]
  private static void ThrowIt(Exception thrown) { throw thrown; }

  private static T ThrowIt<T>(Exception thrown) {
    ThrowIt(thrown);
    return default(T);
  }

  [Test]
  public void ARunSeesEachStepAndEnds() {
    using (Trainer trainer = Nets.Of(context, Data.Arrays(context, Nets.Sine()))) {
      var steps = new List<long>();
      trainer.Run(5, report => {
        steps.Add(report.Step);
        return report.Step < 3;
      });
      Assert.AreEqual(new long[] { 1, 2, 3 }, steps);
      trainer.Run(5, new Seen(report => steps.Add(report.Step)));
      Assert.AreEqual(5, steps.Count);
      trainer.Stepped += report => steps.Add(-report.Step);
      trainer.Run(6);
      trainer.Step();
      Assert.AreEqual(new long[] { -6, -7 }, steps.Skip(5));
    }
  }

  private sealed class Seen : IProgress<StepReport> {
    private readonly Action<StepReport> see;
    internal Seen(Action<StepReport> see) { this.see = see; }
    public void Report(StepReport report) { see(report); }
  }

  [Test]
  public void WhatARunsFunctionThrowsArrives() {
    var thrown = new Mine("on step");
    using (Trainer trainer = Nets.Of(context, Data.Arrays(context, Nets.Sine()))) {
      ArrivesAsItself(thrown, () => trainer.Run(5, report => {
        if (report.Step == 2) ThrowIt(thrown);
        return true;
      }));
      Assert.AreEqual(3, trainer.Step().Step);
    }
  }

  [Test]
  public void ARunsFunctionMayCallTheTrainer() {
    using (Trainer trainer = Nets.Of(context, Data.Arrays(context, Nets.Sine()))) {
      string digest = null;
      trainer.Run(3, report => {
        digest = trainer.Digest();
        trainer.Set("lr", 0.001);
        Assert.Throws<BusyException>(() => trainer.Run(9));
        return true;
      });
      Assert.AreEqual(digest, trainer.Digest());
    }
  }

  private Data Rows(FillFunction fill) { return Data.RowsOf(context, Nets.Rows, new[] { new Field("x", DType.F32, 1), new Field("y", DType.F32, 1) }, fill); }

  [Test]
  public void WhatAFillThrowsArrivesAtTheStep() {
    var thrown = new Mine("fill");
    using (Data data = Rows((rows, arrays) => ThrowIt(thrown)))
    using (Trainer trainer = Nets.Of(context, data)) {
      ArrivesAsItself(thrown, () => trainer.Step());
      ArrivesAsItself(thrown, () => trainer.Run(3));
    }
  }

  [Test]
  public void AnArrayThatWasLentIsOver() {
    BorrowedArray kept = null;
    using (Data data = Rows((rows, arrays) => {
      foreach (BorrowedArray array in arrays) array.Floats.Fill(1);
      kept = arrays[0];
    }))
    using (Trainer trainer = Nets.Of(context, data)) trainer.Step();
    Assert.AreEqual(new long[] { Nets.Rows, 1 }, kept.Dims);
    Assert.Throws<InvalidHandleException>(() => kept.Floats.Fill(2));
    Assert.Throws<InvalidHandleException>(() => kept.Read<float>());
  }

  [Test]
  public void AScheduleOfTheProgramsIsAsked() {
    using (Trainer trainer = Nets.Of(context)) {
      Batch batch = Nets.Sine();
      trainer.SetSchedule(k => 0.5 / (k + 1));
      Assert.AreEqual(0.5, trainer.Step(batch).Lr);
      Assert.AreEqual(0.25, trainer.Step(batch).Lr);
      var thrown = new Mine("rate");
      trainer.SetSchedule(k => ThrowIt<double>(thrown));
      ArrivesAsItself(thrown, () => trainer.Step(batch));
      trainer.SetSchedule(null);
      Nets.Collect();
      Assert.AreEqual(3, trainer.Step(batch).Step);
    }
  }

  [Test]
  public void ALogGetsRecordsAndWhatItThrowsArrives() {
    var records = new List<string>();
    Exception thrown = null;
    using (var logged = new Context(new ContextOptions { Threads = 1, Log = (level, area, text) => {
      records.Add(level + " " + area + " " + text);
      if (thrown != null) ThrowIt(thrown);
    } })) {
      using (Trainer trainer = Nets.Of(logged)) trainer.Step(Nets.Sine());
      Assert.IsNotEmpty(records);
      thrown = new Mine("log");
      ArrivesAsItself(thrown, () => Nets.Of(logged));
    }
  }

  [Test]
  public void AParallelFunctionRunsTheTasks() {
    int calls = 0;
    ParallelFunction parallel = (n, task) => {
      Interlocked.Increment(ref calls);
      Parallel.For(0, n, task);
    };
    float[] a = Enumerable.Range(0, Side * Side).Select(i => (float)Math.Sin(i)).ToArray(), c = new float[a.Length], d = new float[a.Length];
    using (var own = new Context(new ContextOptions { Threads = 2, Parallel = parallel }))
    using (Gemm lent = new Gemm(own, Side, Side, Side), ours = new Gemm(context, Side, Side, Side)) {
      lent.Run(a, a, c);
      ours.Run(a, a, d);
    }
    Assert.Greater(calls, 0);
    Assert.AreEqual(d, c);
  }

  private const int Side = 256;

  [Test]
  public void WhatAParallelFunctionThrowsArrivesAndLateTasksAreRefused() {
    Action<long> kept = null;
    var thrown = new Mine("parallel");
    ParallelFunction parallel = (n, task) => {
      kept = task;
      ThrowIt(thrown);
    };
    using (var own = new Context(new ContextOptions { Threads = 2, Parallel = parallel })) {
      ArrivesAsItself(thrown, () => {
        using (var gemm = new Gemm(own, Side, Side, Side)) gemm.Run(new float[Side * Side], new float[Side * Side], new float[Side * Side]);
      });
      Assert.Throws<InvalidHandleException>(() => kept(0));
    }
  }

  private sealed class Twice : IDifferentiableHostOp {
    internal Exception InForward, InBackward, InShape;

    public OpType[] Shape(OpType[] inputs) {
      if (InShape != null) ThrowIt(InShape);
      return inputs;
    }

    public void Forward(BorrowedArray[] inputs, BorrowedArray[] outputs) {
      if (InForward != null) ThrowIt(InForward);
      float[] x = inputs[0].ToArray<float>();
      Span<float> y = outputs[0].As<float>();
      for (int i = 0; i < x.Length; ++i) y[i] = 2 * x[i];
      Assert.Throws<InvalidArgumentException>(() => inputs[0].As<float>());
      Assert.Throws<InvalidArgumentException>(() => outputs[0].As<double>());
    }

    public void Backward(BorrowedArray[] inputs, BorrowedArray[] outputs, BorrowedArray[] dOutputs, BorrowedArray[] dInputs) {
      if (InBackward != null) ThrowIt(InBackward);
      if (dInputs[0] == null) return;
      float[] above = dOutputs[0].ToArray<float>();
      Span<float> below = dInputs[0].As<float>();
      for (int i = 0; i < above.Length; ++i) below[i] = 2 * above[i];
    }
  }

  private Trainer WithOp(Func<Graph, Value, Value> twice) {
    using (var graph = new Graph(context)) {
      Value x = graph.Linear("first", graph.Input("x", DType.F32, Graph.Batch, 1), 8);
      Value y = graph.Linear("second", Ops.Gelu(twice(graph, x)), 1);
      graph.Loss(Ops.Mse(y, graph.Input("y", DType.F32, Graph.Batch, 1)));
      using (var model = new Model(graph, 1))
      using (var recipe = new Recipe { Batch = Nets.Rows, Lr = 0.01 })
        return new Trainer(model, recipe);
    }
  }

  [Test]
  public void AnOpOfTheProgramsTrains() {
    context.RegisterOp("twice", new Twice());
    Nets.Collect();
    using (Trainer own = WithOp((graph, x) => graph.Op("twice", x)), ours = WithOp((graph, x) => x * 2)) {
      for (int i = 0; i < 10; ++i) Assert.AreEqual(ours.Step(Nets.Sine()).Loss, own.Step(Nets.Sine()).Loss);
    }
  }

  [Test]
  public void WhatAnOpThrowsArrives() {
    var op = new Twice();
    context.RegisterOp("twice", op);
    using (Trainer trainer = WithOp((graph, x) => graph.Op("twice", x))) {
      op.InForward = new Mine("forward");
      ArrivesAsItself(op.InForward, () => trainer.Step(Nets.Sine()));
      op.InForward = null;
      op.InBackward = new Mine("backward");
      ArrivesAsItself(op.InBackward, () => trainer.Step(Nets.Sine()));
      op.InBackward = null;
      op.InShape = new Mine("shape");
      ArrivesAsItself(op.InShape, () => WithOp((graph, x) => graph.Op("twice", x)));
      op.InShape = null;
      Assert.AreEqual(1, trainer.Step(Nets.Sine()).Step);
    }
  }

  [Test]
  public void WeightsGoThroughStreams() {
    using (Model model = Nets.Net(context), other = Nets.Net(context)) {
      other.Set(other.Parameters[0].Name, new float[1, 8]);
      Assert.AreNotEqual(model.Digest(), other.Digest());
      var stream = new MemoryStream();
      model.Write(stream);
      stream.Position = 0;
      ReadReport report = other.Read(stream);
      Assert.AreEqual(model.Parameters.Count, report.Read);
      Assert.AreEqual(model.Digest(), other.Digest());
      stream.Position = 0;
      string first = model.Parameters[0].Name;
      report = other.Read(stream, true, new Dictionary<string, string> { { first, "elsewhere" } });
      Assert.AreEqual(new[] { first }, report.Missing);
      Assert.AreEqual(1, report.Unexpected.Count);
      Assert.Catch<ScaleTrainException>(() => other.Read(new MemoryStream(new byte[] { 1, 2, 3 })));
    }
  }

  private sealed class Broken : MemoryStream {
    internal readonly Exception Thrown = new Mine("stream");
    public override void Write(byte[] buffer, int offset, int count) { ThrowIt(Thrown); }
    public override int Read(byte[] buffer, int offset, int count) {
      ThrowIt(Thrown);
      return 0;
    }
  }

  [Test]
  public void WhatAStreamThrowsArrives() {
    using (Model model = Nets.Net(context)) {
      var broken = new Broken();
      ArrivesAsItself(broken.Thrown, () => model.Write(broken));
      ArrivesAsItself(broken.Thrown, () => model.Read(broken));
    }
  }

  [Test]
  public void TokensComeOneByOneAndWhatTheirFunctionThrowsArrives() {
    using (Model gpt = Model.Builtin(context, "gpt", 1, new { layers = 1, width = 16, heads = 2, context = 16, vocabulary = 32 }))
    using (var predictor = new Predictor(gpt)) {
      var seen = new List<int>();
      int[] made = predictor.Generate(new[] { 1, 2, 3 }, new GenerateOptions { Tokens = 5 }, token => {
        seen.Add(token);
        return seen.Count < 3;
      });
      Assert.AreEqual(3, made.Length);
      Assert.AreEqual(seen, made);
      var thrown = new Mine("token");
      ArrivesAsItself(thrown, () => predictor.Generate(new[] { 1 }, null, token => ThrowIt<bool>(thrown)));
    }
  }
}
