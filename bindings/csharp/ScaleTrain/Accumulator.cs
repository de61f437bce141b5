using System.Collections.Generic;

namespace ScaleTrain {

/// <summary>Gradient accumulation by itself, over the program's own gradients. A step is backward and <see cref="Add"/>, again and again until
/// <see cref="ShouldStep"/>.</summary>
public sealed class Accumulator : Handle {
  private readonly Native.Accumulator native;
  internal override NativeHandle Safe { get { return native.handle; } }

  /// <summary>steps: micro-batches of a step; gradients: the arrays that each backward writes, pinned until it is disposed of.</summary>
  [OfC("st_accumulator_create")]
  public Accumulator(Context context, long steps, params View[] gradients) {
    Given(context, "context");
    Pins pins = Pins.Hold(gradients, "gradients", false);
    try {
      native = new Native.Accumulator(context.native, steps, pins.All);
    } catch {
      pins.Dispose();
      throw;
    }
    Safe.Lend(pins);
    Safe.KeepWhat(context.Safe);
  }

  /// <summary>Adds the gradient of a micro-batch's summed loss; weight: its tokens, 0: it is empty. The last of a step leaves the gradient of the mean
  /// over all tokens in the arrays.</summary>
  [OfC("st_accumulator_add")]
  public void Add(double weight) { native.add(weight); }

  /// <summary>Whether the arrays hold the gradient of the step: use it, or reduce it between ranks, now. Once it says so, the next
  /// <see cref="Add"/> begins a new one.</summary>
  [OfC("st_accumulator_should_step")]
  public bool ShouldStep() { return native.should_step(); }

  /// <summary>Tokens of the step so far.</summary>
  [OfC("st_accumulator_weight")]
  public double Weight { get { return native.weight(); } }

  /// <summary>Forgets the micro-batches of this step.</summary>
  [OfC("st_accumulator_reset")]
  public void Reset() { native.reset(); }

  /// <summary>Between two steps only.</summary>
  [OfC("st_accumulator_set_steps")]
  public void SetSteps(long steps) { native.set_steps(steps); }

  /// <summary>Its own memory by name, for a checkpoint in the middle of a step; written to, it goes on from there.</summary>
  [OfC("st_accumulator_state_views")]
  public IReadOnlyDictionary<string, StateArray> State() {
    lock (native) return StateArray.All(Safe, native.state());
  }
}

}
