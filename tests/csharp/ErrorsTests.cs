using System;
using System.Linq;
using NUnit.Framework;
using ScaleTrain;

/// <summary>Each error has its class, the library's complete text, and the known details.</summary>
[TestFixture]
public class ErrorsTests : OneThreadTests {
  [Test]
  public void AnUnknownKeyNamesTheNearest() {
    var error = Assert.Throws<InvalidArgumentException>(() => new Recipe(new { weight_deca = 3 }));
    StringAssert.Contains("weight_decay", error.Message);
    Assert.AreEqual(Status.InvalidArgument, error.Status);
    Assert.AreEqual(-1, error.Rank);
    Assert.AreEqual("", error.File);
  }

  [Test]
  public void WaysOutNameMembersOfThisLanguage() {
    using (Trainer trainer = Nets.Of(context)) {
      StringAssert.EndsWith("call Trainer.Forward and Trainer.Backward first", Assert.Throws<WrongStateException>(() => trainer.Apply()).Message);
      var batch = new Batch { { "x", new double[Nets.Rows], Nets.Rows, 1 }, { "y", new float[Nets.Rows], Nets.Rows, 1 } };
      StringAssert.EndsWith("convert it first (View.To)", Assert.Throws<InvalidArgumentException>(() => trainer.Step(batch)).Message);
    }
  }

  [Test]
  public void AMissingFileIsNamedInUtf8() {
    const string path = "/nowhere/Größe ✓ 文.txt";
    var error = Assert.Throws<NotFoundException>(() => Data.Files(context, path, new { context = 8 }));
    Assert.AreEqual(path, error.File);
    StringAssert.Contains(path, error.Message);
  }

  [Test]
  public void TextsGoThroughInUtf8() {
    using (var graph = new Graph(context)) {
      graph.Loss(Ops.Mean(graph.Linear("größe ✓", graph.Input("文", DType.F32, Graph.Batch, 2), 1)));
      StringAssert.Contains("文", graph.Text());
      using (var model = new Model(graph)) Assert.IsTrue(model.Parameters.Any(one => one.Name == "größe ✓.weight"));
    }
    Assert.Throws<InvalidArgumentException>(() => Data.Files(context, "a\0b"));
  }

  [Test]
  public void AnOpAndATensorAreNamed() {
    using (var graph = new Graph(context)) {
      Value x = graph.Input("x", DType.F32, Graph.Batch, 3), w = graph.Parameter("w", new[] { 4L, 5 });
      Assert.AreEqual("matmul", Assert.Throws<InvalidArgumentException>(() => Ops.Matmul(x, w)).Op);
      Value other = new Graph(context).Input("x", DType.F32, Graph.Batch, 3);
      StringAssert.Contains("another graph", Assert.Throws<InvalidArgumentException>(() => Ops.Add(x, other)).Message);
    }
    using (Model model = Nets.Net(context)) {
      Assert.AreEqual("nothing", Assert.Throws<NotFoundException>(() => model.Get("nothing")).Tensor);
      Assert.AreEqual("nothing", Assert.Catch<ScaleTrainException>(() => model.Get("nothing", new float[3])).Tensor);
    }
  }

  [Test]
  public void TheMemoryLimitIsNamed() {
    using (var small = new Context(new ContextOptions { MemoryLimit = 1 << 20 })) {
      var error = Assert.Throws<NoMemoryException>(() => new Tensor(small, DType.F32, 1 << 20));
      StringAssert.Contains("4194304", error.Message.Replace(",", ""));
    }
  }

  [Test]
  public void NanInABatchIsNotFinite() {
    Batch batch = Nets.Sine();
    Span<float> x = batch["x"].As<float>();
    x[3] = float.NaN;
    using (Trainer trainer = Nets.Of(context)) Assert.Throws<NotFiniteException>(() => trainer.Step(batch));
  }

  [Test]
  public void DisposedObjectsSaySo() {
    Batch batch = Nets.Sine();
    Trainer trainer = Nets.Of(context);
    trainer.Dispose();
    trainer.Dispose();
    Assert.IsTrue(trainer.IsDisposed);
    Assert.AreEqual(Status.InvalidHandle, Assert.Throws<InvalidHandleException>(() => trainer.Step(batch)).Status);
    Assert.Throws<InvalidHandleException>(() => trainer.Run(3, report => true));
    Assert.Throws<InvalidHandleException>(() => trainer.Cancel());
    Assert.Throws<InvalidHandleException>(() => trainer.SetSchedule(k => 1));
    Model model = Nets.Net(context);
    model.Dispose();
    Assert.Throws<InvalidHandleException>(() => new Predictor(model));
    Assert.Throws<InvalidHandleException>(() => model.Write(new System.IO.MemoryStream()));
    var graph = new Graph(context);
    Value x = graph.Input("x", DType.F32, Graph.Batch, 3);
    graph.Dispose();
    Assert.Throws<InvalidHandleException>(() => Ops.Add(x, x));
    Assert.Throws<InvalidHandleException>(() => graph.Output("y", x));
    Assert.Throws<InvalidHandleException>(() => new Model(graph));
    var scaler = new LossScaler(context);
    scaler.Dispose();
    double scale = 0;
    Assert.Throws<InvalidHandleException>(() => scale = scaler.Scale);
    Assert.AreEqual(0, scale);
    var closed = new Context();
    closed.Dispose();
    Assert.Throws<InvalidHandleException>(() => Tensor.Wrap(closed, new float[3]));
    Assert.Throws<InvalidHandleException>(() => Data.Arrays(closed, batch));
  }

  [Test]
  public void TheLibraryTellsItself() {
    StringAssert.Contains("\"version\":\"" + Library.Version + "\"", Library.Features().Replace(" ", ""));
    int[] parts = Library.Version.Split('.').Take(2).Select(int.Parse).ToArray();
    Library.Require(parts[0], parts[1]);
    Assert.Throws<UnsupportedException>(() => Library.Require(parts[0] + 1, 0));
  }

  [Test]
  public void ARecipesPropertiesAreItsKeys() {
    using (var recipe = new Recipe { Batch = 16, Lr = 0.5, Optimizer = "sgd", Nesterov = true }) {
      Assert.AreEqual(16, recipe.Get("batch"));
      Assert.AreEqual(0.5, recipe.Get("lr"));
      Assert.AreEqual("sgd", recipe.Optimizer);
      Assert.IsTrue(recipe.Nesterov);
      recipe.Set("batch", "auto");
      Assert.AreEqual("auto", recipe.Get("batch"));
      long batch = 0;
      StringAssert.Contains("batch is \"auto\", which has another type", Assert.Throws<WrongStateException>(() => batch = recipe.Batch).Message);
      Assert.AreEqual(0, batch);
      foreach (object value in new object[] { double.NaN, float.NegativeInfinity })
        Assert.AreEqual("recipe: lr must be a number in [0, inf), got " + System.FormattableString.Invariant($"{value}"),
          Assert.Throws<InvalidArgumentException>(() => recipe.Set("lr", value)).Message);
      foreach (object value in new object[] { 1UL << 63, 18446744073709551616m })
        Assert.AreEqual("recipe: seed must be a whole number in [0, 2^63), got " + value,
          Assert.Throws<InvalidArgumentException>(() => recipe.Set("seed", value)).Message);
      recipe.Groups = "[{\"pattern\":\"*.bias\",\"weight_decay_scale\":0}]";
      StringAssert.Contains("bias", recipe.Groups);
    }
  }
}
