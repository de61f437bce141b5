using System;
using System.Collections.Generic;

namespace ScaleTrain {

/// <summary>An optimizer by itself, over the program's own parameters and gradients, where they lie.</summary>
/// <example><code>var optimizer = new Optimizer(context, new Batch { { "w", w } }, new { optimizer = "adamw", lr = 1e-3, clip = 1 });</code></example>
public sealed class Optimizer : Handle {
  private readonly Native.Optimizer native;
  private Pins copies;
  internal override NativeHandle Safe { get { return native.handle; } }

  /// <summary>Updates the parameters in place; they are pinned until it is disposed of. settings: JSON text, a dictionary or an anonymous object; keys
  /// are those of <c>optimizer.h</c>.</summary>
  [OfC("st_optimizer_create")]
  public Optimizer(Context context, Batch parameters, object settings = null) {
    Given(context, "context");
    Pins pins = Pins.Hold(Given(parameters, "parameters"));
    try {
      native = new Native.Optimizer(context.native, settings == null ? "{}" : Json.OfOptions(settings), pins.All);
    } catch {
      pins.Dispose();
      throw;
    }
    Safe.Lend(pins);
    Safe.KeepWhat(context.Safe);
  }

  /// <summary>One update by gradients in the order of the parameters.</summary>
  [OfC("st_optimizer_step")]
  public OptimizerReport Step(params View[] gradients) {
    using (Pins pins = Pins.Borrow(gradients, "gradients")) return OptimizerReport.Of(native.step(pins.All));
  }

  /// <summary>The scaler's unscale and step, and this step, in one: by scaled gradients, which stay as they are. Its <see cref="LossScaler.Update"/> comes
  /// next.</summary>
  [OfC("st_optimizer_step_scaled")]
  public OptimizerReport Step(LossScaler scaler, params View[] gradients) {
    Given(scaler, "scaler");
    using (Pins pins = Pins.Borrow(gradients, "gradients")) return OptimizerReport.Of(native.step_scaled(scaler.native, pins.All));
  }

  /// <summary>The weights in 16 bits, float parameters being their masters: written now and by every step. In the order of the parameters, null
  /// where there is none of one; none at all: no more copies. They are pinned until the next such call.</summary>
  [OfC("st_optimizer_keep_copies")]
  public void KeepCopies(params View[] copies) {
    Pins pins = Pins.Hold(copies, "copies", true);
    lock (native) Safe.Lend(ref this.copies, pins, native.keep_copies);
  }

  /// <summary>Changes a setting, such as lr, from the next step on.</summary>
  [OfC("st_optimizer_set")]
  public void Set(string key, object value) { native.set(Given(key, "key"), Json.Of(value)); }

  /// <summary>Its own memory by name, for a checkpoint; written to, it goes on from there.</summary>
  [OfC("st_optimizer_state_views")]
  public IReadOnlyDictionary<string, StateArray> State() {
    lock (native) return StateArray.All(Safe, native.state());
  }
}

}
