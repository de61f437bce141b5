using System.Collections.Generic;

namespace ScaleTrain {

/// <summary>One optimizer step.</summary>
public struct StepReport {
  /// <summary>Whether nothing was updated because the gradient was not finite or too large to be clipped.</summary>
  public bool Skipped { get; private set; }
  /// <summary>Number of the step, from 1 on; skipped steps count.</summary>
  public long Step { get; private set; }
  /// <summary>Loss before the step's update.</summary>
  public double Loss { get; private set; }
  /// <summary>Learning rate.</summary>
  public double Lr { get; private set; }
  /// <summary>L2 norm of all gradients, before clipping.</summary>
  public double GradNorm { get; private set; }
  /// <summary>Factor that the loss was multiplied with.</summary>
  public double LossScale { get; private set; }
  /// <summary>Tokens since step 1; rows of the loss for a model without tokens.</summary>
  public long Tokens { get; private set; }
  /// <summary>Speed of this step.</summary>
  public double TokensPerSecond { get; private set; }
  /// <summary>Duration of this step.</summary>
  public double Milliseconds { get; private set; }
  /// <summary>Memory of all buffers.</summary>
  public long MemoryBytes { get; private set; }
  /// <summary>The gradient noise scale; NaN if not measured or not known yet.</summary>
  public double GradientNoiseScale { get; private set; }
  /// <summary>Why a save of <see cref="Trainer.SaveEvery"/> failed, reported once; null if none did.</summary>
  public string SaveError { get; private set; }
  /// <summary>Step of the newest checkpoint that these saves have written to the disk; -1 if none yet.</summary>
  public long SavedStep { get; private set; }

  internal static StepReport Of(Record record) {
    return new StepReport {
      Skipped = record.Flag(), Step = record.Integer(), Loss = record.Real(), Lr = record.Real(), GradNorm = record.Real(),
      LossScale = record.Real(), Tokens = record.Integer(), TokensPerSecond = record.Real(), Milliseconds = record.Real(),
      MemoryBytes = record.Integer(), GradientNoiseScale = record.Real(), SaveError = record.TextOrNull(), SavedStep = record.Integer()
    };
  }
}

/// <summary>The result of evaluating a model on data, with dropout off.</summary>
public sealed class Evaluation {
  /// <summary>Mean loss over the counted rows.</summary>
  public double Loss { get; }
  /// <summary>Number of counted rows.</summary>
  public double Rows { get; }
  /// <summary>The mean of each output named "metric.*".</summary>
  public IReadOnlyDictionary<string, double> Metrics { get; }

  internal Evaluation(Record record) {
    Loss = record.Real();
    Rows = record.Real();
    var metrics = new Dictionary<string, double>();
    for (long left = record.Integer(); left > 0; --left) {
      string name = record.Text();
      metrics[name] = record.Real();
    }
    Metrics = metrics;
  }
}

/// <summary>One update by an optimizer.</summary>
public struct OptimizerReport {
  /// <summary>Whether nothing was updated because a gradient was not finite.</summary>
  public bool Skipped { get; private set; }
  /// <summary>Number of updates so far.</summary>
  public long Step { get; private set; }
  /// <summary>Learning rate.</summary>
  public double Lr { get; private set; }
  /// <summary>L2 norm of all gradients, before clipping.</summary>
  public double Norm { get; private set; }

  internal static OptimizerReport Of(Record record) {
    return new OptimizerReport { Skipped = record.Flag(), Step = record.Integer(), Lr = record.Real(), Norm = record.Real() };
  }
}

/// <summary>Memory of the buffers for one purpose.</summary>
public struct MemoryUse {
  /// <summary>The purpose: "parameters", "gradients", ...</summary>
  public string Role { get; internal set; }
  /// <summary>Bytes in use now.</summary>
  public long Bytes { get; internal set; }
  /// <summary>Maximum of Bytes.</summary>
  public long PeakBytes { get; internal set; }
}

/// <summary>Memory of a context's buffers.</summary>
public sealed class MemoryStats {
  /// <summary>Bytes in use now.</summary>
  public long AllocatedBytes { get; }
  /// <summary>Bytes available on this machine, reduced to the limits of the cgroup and of the context.</summary>
  public long AvailableBytes { get; }
  /// <summary>Resident memory of this process.</summary>
  public long ResidentBytes { get; }
  /// <summary>Maximum of AllocatedBytes.</summary>
  public long PeakBytes { get; }
  /// <summary>The context's limit; 0 for none.</summary>
  public long LimitBytes { get; }
  /// <summary>The use by purpose; their bytes add up to AllocatedBytes.</summary>
  public IReadOnlyList<MemoryUse> Roles { get; }

  internal MemoryStats(Record record) {
    AllocatedBytes = record.Integer();
    AvailableBytes = record.Integer();
    ResidentBytes = record.Integer();
    PeakBytes = record.Integer();
    LimitBytes = record.Integer();
    var roles = new MemoryUse[record.Integer()];
    for (int i = 0; i < roles.Length; ++i)
      roles[i] = new MemoryUse { Role = record.Text(), Bytes = record.Integer(), PeakBytes = record.Integer() };
    Roles = roles;
  }
}

/// <summary>A parameter of a model.</summary>
public sealed class ParameterInfo {
  /// <summary>Name with its scopes, for example "first.weight".</summary>
  public string Name { get; }
  /// <summary>The type in which it is stored.</summary>
  public DType DType { get; }
  /// <summary>The dims, outermost first.</summary>
  public long[] Dims { get; }
  /// <summary>Whether steps change it.</summary>
  public bool Trainable { get; }
  /// <summary>Number of elements.</summary>
  public long Size { get { return View.SizeOf(Dims); } }

  internal ParameterInfo(Record record) {
    Name = record.Text();
    DType = (DType)record.Integer();
    Dims = record.Integers();
    Trainable = record.Flag();
  }

  internal static ParameterInfo Named(IReadOnlyList<ParameterInfo> all, string name) {
    foreach (ParameterInfo info in all)
      if (info.Name == name) return info;
    throw new NotFoundException("the model has no parameter \"" + name + "\"; Model.Parameters lists all") { Tensor = name ?? "" };
  }

  /// <summary>Its dims, for a span of length elements; throws if the sizes differ.</summary>
  internal long[] DimsOf(int length) {
    if (Size != length) throw new InvalidArgumentException(Name + " has " + Size + " elements, the span has " + length) { Tensor = Name };
    return Dims;
  }
}

/// <summary>The result of reading weights by name.</summary>
public sealed class ReadReport {
  /// <summary>Number of parameters read.</summary>
  public long Read { get; }
  /// <summary>Parameters of the model that the source does not have.</summary>
  public IReadOnlyList<string> Missing { get; }
  /// <summary>Tensors of the source that the model does not have.</summary>
  public IReadOnlyList<string> Unexpected { get; }

  internal ReadReport(Record record) {
    Read = record.Integer();
    Missing = record.Texts();
    Unexpected = record.Texts();
  }
}

/// <summary>Dtype and dims of a graph value. A negative first dimension -n means n times the batch size.</summary>
public sealed class ValueInfo {
  /// <summary>The type of the elements.</summary>
  public DType DType { get; }
  /// <summary>The dims, outermost first.</summary>
  public long[] Dims { get; }

  internal ValueInfo(Record record) {
    DType = (DType)record.Integer();
    Dims = record.Integers();
  }
}

}
