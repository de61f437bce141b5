using System;
using System.Collections.Generic;

namespace ScaleTrain {

/// <summary>An optimizer as a separate part, over the program's own parameters and gradients, in place.</summary>
/// <example><code>var optimizer = new Optimizer(context, new Batch { { "w", w } }, new { optimizer = "adamw", lr = 1e-3, clip = 1 });</code></example>
public sealed class Optimizer : Handle {
  private readonly Native.Optimizer native;
  private Pins copies;
  internal override NativeHandle Safe { get { return native.handle; } }

  /// <summary>Creates an optimizer of these parameters, which stay pinned until it is disposed. settings are JSON text, a dictionary or an anonymous
  /// object; <c>optimizer.h</c> documents the keys.</summary>
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

  /// <summary>Updates the parameters. Gradients are in the order of the parameters.</summary>
  [OfC("st_optimizer_step")]
  public OptimizerReport Step(params View[] gradients) {
    using (Pins pins = Pins.Borrow(gradients, "gradients")) return OptimizerReport.Of(native.step(pins.All));
  }

  /// <summary>The scaler's unscale and step and this optimizer's step in one call. Takes scaled gradients and does not change them. The scaler's
  /// <see cref="LossScaler.Update"/> must follow.</summary>
  [OfC("st_optimizer_step_scaled")]
  public OptimizerReport Step(LossScaler scaler, params View[] gradients) {
    Given(scaler, "scaler");
    using (Pins pins = Pins.Borrow(gradients, "gradients")) return OptimizerReport.Of(native.step_scaled(scaler.native, pins.All));
  }

  /// <summary>Sets 16-bit copies of float parameters, which are then the master weights. The copies are written now and by every step. They are
  /// in the order of the parameters, with null for a parameter without a copy; no arguments end the copying. They stay pinned until the next such
  /// call.</summary>
  [OfC("st_optimizer_keep_copies")]
  public void KeepCopies(params View[] copies) {
    Pins pins = Pins.Hold(copies, "copies", true);
    lock (native) Safe.Lend(ref this.copies, pins, native.keep_copies);
  }

  /// <summary>Changes a setting, such as lr, from the next step on.</summary>
  [OfC("st_optimizer_set")]
  public void Set(string key, object value) { native.set(Given(key, "key"), Json.Of(value)); }

  /// <summary>The optimizer's own memory by name, for a checkpoint. To restore a checkpoint, write into it.</summary>
  [OfC("st_optimizer_state_views")]
  public IReadOnlyDictionary<string, StateArray> State() {
    lock (native) return StateArray.All(Safe, native.state());
  }
}

}
