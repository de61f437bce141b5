using System.Collections.Generic;

namespace ScaleTrain {

/// <summary>Gradient accumulation as a separate part, over the program's own gradient arrays. In a step, call backward and then
/// <see cref="Add"/> for each micro-batch until <see cref="ShouldStep"/> returns true.</summary>
public sealed class Accumulator : Handle {
  private readonly Native.Accumulator native;
  internal override NativeHandle Safe { get { return native.handle; } }

  /// <summary>steps is the number of micro-batches in a step. gradients are the arrays that each backward writes; they are pinned until this is
  /// disposed.</summary>
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

  /// <summary>Adds the gradient of a micro-batch's summed loss. weight is the micro-batch's token count; 0 means that it is empty. The last
  /// micro-batch of a step writes the gradient of the mean over all tokens into the arrays.</summary>
  [OfC("st_accumulator_add")]
  public void Add(double weight) { native.add(weight); }

  /// <summary>Whether the arrays hold the gradient of the whole step. If so, use it or reduce it over the ranks now: the next <see cref="Add"/>
  /// begins a new step.</summary>
  [OfC("st_accumulator_should_step")]
  public bool ShouldStep() { return native.should_step(); }

  /// <summary>Sum of the weights that the step has had so far.</summary>
  [OfC("st_accumulator_weight")]
  public double Weight { get { return native.weight(); } }

  /// <summary>Discards the micro-batches that this step has had so far.</summary>
  [OfC("st_accumulator_reset")]
  public void Reset() { native.reset(); }

  /// <summary>Changes the number of micro-batches in a step. Allowed only between two steps.</summary>
  [OfC("st_accumulator_set_steps")]
  public void SetSteps(long steps) { native.set_steps(steps); }

  /// <summary>The accumulator's own memory by name, for a checkpoint in the middle of a step. To restore a checkpoint, write into it.</summary>
  [OfC("st_accumulator_state_views")]
  public IReadOnlyDictionary<string, StateArray> State() {
    lock (native) return StateArray.All(Safe, native.state());
  }
}

}
