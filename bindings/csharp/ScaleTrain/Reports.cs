using System.Collections.Generic;

namespace ScaleTrain {

/// <summary>One optimizer step.</summary>
public struct StepReport {
  /// <summary>The gradient was not finite and nothing was updated.</summary>
  public bool Skipped { get; private set; }
  /// <summary>Successful steps so far.</summary>
  public long Step { get; private set; }
  /// <summary>Before the step's update.</summary>
  public double Loss { get; private set; }
  /// <summary>Learning rate.</summary>
  public double Lr { get; private set; }
  /// <summary>L2 norm of all gradients, before clipping.</summary>
  public double GradNorm { get; private set; }
  /// <summary>What the loss was multiplied with.</summary>
  public double LossScale { get; private set; }
  /// <summary>Of a language model; else 0.</summary>
  public long Tokens { get; private set; }
  /// <summary>Of a language model; else 0.</summary>
  public double TokensPerSecond { get; private set; }
  /// <summary>What it took.</summary>
  public double Milliseconds { get; private set; }
  /// <summary>Of all buffers together.</summary>
  public long MemoryBytes { get; private set; }
  /// <summary>NaN: not measured, or not known yet.</summary>
  public double GradientNoiseScale { get; private set; }
  /// <summary>Why a save of <see cref="Trainer.SaveEvery"/> failed, told once; null: none did.</summary>
  public string SaveError { get; private set; }
  /// <summary>Of the newest checkpoint that these saves brought to the disk; -1: none yet.</summary>
  public long SavedStep { get; private set; }

  internal static StepReport Of(Record told) {
    return new StepReport {
      Skipped = told.Flag(), Step = told.Integer(), Loss = told.Real(), Lr = told.Real(), GradNorm = told.Real(), LossScale = told.Real(),
      Tokens = told.Integer(), TokensPerSecond = told.Real(), Milliseconds = told.Real(), MemoryBytes = told.Integer(), GradientNoiseScale = told.Real(),
      SaveError = told.TextOrNull(), SavedStep = told.Integer()
    };
  }
}

/// <summary>A model, looked at over rows.</summary>
public sealed class Evaluation {
  /// <summary>Mean over the counted rows, dropout off.</summary>
  public double Loss { get; }
  /// <summary>How many were counted.</summary>
  public double Rows { get; }
  /// <summary>The mean of each output named "metric.*".</summary>
  public IReadOnlyDictionary<string, double> Metrics { get; }

  internal Evaluation(Record told) {
    Loss = told.Real();
    Rows = told.Real();
    var metrics = new Dictionary<string, double>();
    for (long left = told.Integer(); left > 0; --left) {
      string name = told.Text();
      metrics[name] = told.Real();
    }
    Metrics = metrics;
  }
}

/// <summary>An optimizer's update.</summary>
public struct OptimizerReport {
  /// <summary>A gradient was not finite: nothing has changed.</summary>
  public bool Skipped { get; private set; }
  /// <summary>Updates so far.</summary>
  public long Step { get; private set; }
  /// <summary>Learning rate.</summary>
  public double Lr { get; private set; }
  /// <summary>L2 norm of all gradients, before clipping.</summary>
  public double Norm { get; private set; }

  internal static OptimizerReport Of(Record told) {
    return new OptimizerReport { Skipped = told.Flag(), Step = told.Integer(), Lr = told.Real(), Norm = told.Real() };
  }
}

/// <summary>What buffers of one kind take.</summary>
public struct MemoryUse {
  /// <summary>"parameters", "gradients", ...</summary>
  public string Role { get; internal set; }
  /// <summary>Now.</summary>
  public long Bytes { get; internal set; }
  /// <summary>The most it has been.</summary>
  public long PeakBytes { get; internal set; }
}

/// <summary>A context's memory.</summary>
public sealed class MemoryStats {
  /// <summary>Of its buffers now.</summary>
  public long AllocatedBytes { get; }
  /// <summary>That this machine has left.</summary>
  public long AvailableBytes { get; }
  /// <summary>Of this process.</summary>
  public long ResidentBytes { get; }
  /// <summary>The most that AllocatedBytes has been.</summary>
  public long PeakBytes { get; }
  /// <summary>0: none.</summary>
  public long LimitBytes { get; }
  /// <summary>What has been used; the bytes of all are AllocatedBytes.</summary>
  public IReadOnlyList<MemoryUse> Roles { get; }

  internal MemoryStats(Record told) {
    AllocatedBytes = told.Integer();
    AvailableBytes = told.Integer();
    ResidentBytes = told.Integer();
    PeakBytes = told.Integer();
    LimitBytes = told.Integer();
    var roles = new MemoryUse[told.Integer()];
    for (int i = 0; i < roles.Length; ++i) roles[i] = new MemoryUse { Role = told.Text(), Bytes = told.Integer(), PeakBytes = told.Integer() };
    Roles = roles;
  }
}

/// <summary>What is known about a parameter.</summary>
public sealed class ParameterInfo {
  /// <summary>"first.weight"</summary>
  public string Name { get; }
  /// <summary>What it is kept as.</summary>
  public DType DType { get; }
  /// <summary>Outermost first.</summary>
  public long[] Dims { get; }
  /// <summary>Whether steps change it.</summary>
  public bool Trainable { get; }
  /// <summary>Number of elements.</summary>
  public long Size { get { return View.SizeOf(Dims); } }

  internal ParameterInfo(Record told) {
    Name = told.Text();
    DType = (DType)told.Integer();
    Dims = told.Integers();
    Trainable = told.Flag();
  }

  internal static ParameterInfo Named(IReadOnlyList<ParameterInfo> all, string name) {
    foreach (ParameterInfo info in all)
      if (info.Name == name) return info;
    throw new NotFoundException("the model has no parameter \"" + name + "\"; Model.Parameters names all") { Tensor = name ?? "" };
  }

  /// <summary>Its dims, for a span of so many elements.</summary>
  internal long[] DimsOf(int length) {
    if (Size != length) throw new InvalidArgumentException(Name + " has " + Size + " elements, the span " + length) { Tensor = Name };
    return Dims;
  }
}

/// <summary>What came of reading weights.</summary>
public sealed class ReadReport {
  /// <summary>Parameters that were read.</summary>
  public long Read { get; }
  /// <summary>In the model, not in what was read.</summary>
  public IReadOnlyList<string> Missing { get; }
  /// <summary>The other way round.</summary>
  public IReadOnlyList<string> Unexpected { get; }

  internal ReadReport(Record told) {
    Read = told.Integer();
    Missing = told.Texts();
    Unexpected = told.Texts();
  }
}

/// <summary>Dtype and dims of a graph's value; a first dimension below 0 is that many times the batch.</summary>
public sealed class ValueInfo {
  /// <summary>What its elements are.</summary>
  public DType DType { get; }
  /// <summary>Outermost first.</summary>
  public long[] Dims { get; }

  internal ValueInfo(Record told) {
    DType = (DType)told.Integer();
    Dims = told.Integers();
  }
}

}
