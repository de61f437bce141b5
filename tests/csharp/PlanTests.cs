using NUnit.Framework;
using ScaleTrain;

/// <summary>A plan of a run on a machine that is not here, from C#.</summary>
[TestFixture]
public class PlanTests {
  private static Model Gpt() {
    using (var context = new Context(new ContextOptions { LateParameters = true }))
      return Model.Builtin(context, "gpt", 1, new { layers = 2, width = 64, heads = 4, context = 32, vocabulary = 300 });
  }

  [Test]
  public void APlanOutlivesModelRecipeAndContext() {
    Plan plan;
    using (Model model = Gpt())
      using (var recipe = new Recipe { Ranks = 4, Batch = 4, Zero = 1 }) plan = new Plan(model, recipe, new { machine = "v100-32g", rank = 3, simulate = true });
    StringAssert.StartsWith("{\"rank\":3,\"world\":4,", plan.Json());
    StringAssert.StartsWith("rank 3 of 4 (4 data x 1 tensor x 1 stages) on v100-32g\n", plan.Text());
    Assert.IsTrue(plan.Fits);
    Assert.Greater(plan.StepSeconds, 0);
    using (Recipe planned = plan.Recipe()) Assert.AreEqual(1L, planned.Get("zero"));
    StringAssert.Contains("Plan of rank 3 of 4", plan.Report());
    StringAssert.Contains("\"process_name\"", plan.Trace());
    plan.Dispose();
    Assert.Throws<InvalidHandleException>(() => plan.Json());
  }

  [Test]
  public void ATrainerForecastsItsStep() {
    using (var context = new Context(new ContextOptions { Threads = 1 }))
      using (Trainer trainer = Nets.Of(context)) {
        StringAssert.Contains("\"measured_seconds\":null", trainer.Forecast());
        Assert.Throws<InvalidArgumentException>(() => trainer.Forecast("{}"));
      }
  }

  [Test]
  public void WhatIsWrongIsNamedAndWhatIsTooLargeDoesNotFit() {
    using (Model model = Gpt())
      using (var recipe = new Recipe()) {
        string message = Assert.Throws<InvalidArgumentException>(() => new Plan(model, recipe, new { machin = "h200" })).Message;
        StringAssert.StartsWith("new Plan: options: option \"machin\" is unknown; did you mean machine?", message);
        Assert.Throws<InvalidArgumentException>(() => new Plan(null, recipe));
        using (var large = new Plan(model, recipe, new { machine = "h200", device_memory = 1L << 30 })) Assert.IsFalse(large.Fits);
      }
  }
}
