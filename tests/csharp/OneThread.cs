using NUnit.Framework;
using ScaleTrain;

/// <summary>Tests whose context uses one thread.</summary>
public abstract class OneThreadTests {
  protected Context context;

  [SetUp] public void Begin() { context = new Context(new ContextOptions { Threads = 1 }); }
  [TearDown] public void End() { context.Dispose(); }
}
