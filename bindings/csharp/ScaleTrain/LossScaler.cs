namespace ScaleTrain {

/// <summary>Options of a <see cref="LossScaler"/>. The defaults are those of torch.amp.GradScaler, plus a minimum scale.</summary>
public sealed class LossScalerOptions {
  /// <summary>If false, the scale is 1; gradients are still checked.</summary>
  public bool Enabled { get; set; } = true;
  /// <summary>If false, the scale does not change.</summary>
  public bool Dynamic { get; set; } = true;
  /// <summary>Threads; 0 means the context's.</summary>
  public int Threads { get; set; }
  /// <summary>The first scale.</summary>
  public double InitialScale { get; set; } = 65536;
  /// <summary>Factor of the scale after GrowthInterval steps without overflow.</summary>
  public double GrowthFactor { get; set; } = 2;
  /// <summary>Factor of the scale after an overflow.</summary>
  public double BackoffFactor { get; set; } = 0.5;
  /// <summary>Number of consecutive steps without overflow after which the scale grows.</summary>
  public long GrowthInterval { get; set; } = 2000;
  /// <summary>Lower limit of a dynamic scale.</summary>
  public double MinimumScale { get; set; } = 1;
  /// <summary>The overflow from which on the scale shrinks: 1 is each; 2 is each but the first.</summary>
  public long Hysteresis { get; set; } = 1;
  /// <summary>Whether each step without overflow restarts the count of <see cref="Hysteresis"/>. If false, only growth restarts it.</summary>
  public bool ConsecutiveHysteresis { get; set; }
}

/// <summary>Loss scaling as a separate part. A step is <see cref="Scale"/>, backward, <see cref="Unscale"/>, clip, <see cref="Step"/>,
/// <see cref="Update"/>; a call out of this order throws <see cref="WrongStateException"/>.</summary>
public sealed class LossScaler : Handle {
  internal readonly Native.LossScaler native;
  internal override NativeHandle Safe { get { return native.handle; } }

  /// <summary>With these options; null means the defaults.</summary>
  [OfC("st_loss_scaler_create")]
  public LossScaler(Context context, LossScalerOptions options = null) {
    LossScalerOptions wish = options ?? new LossScalerOptions();
    var raw = new Native.LossScalerOptions {
      enabled = wish.Enabled, dynamic = wish.Dynamic, threads = wish.Threads, initial_scale = wish.InitialScale, growth_factor = wish.GrowthFactor,
      backoff_factor = wish.BackoffFactor, growth_interval = wish.GrowthInterval, minimum_scale = wish.MinimumScale, hysteresis = wish.Hysteresis,
      consecutive_hysteresis = wish.ConsecutiveHysteresis
    };
    native = new Native.LossScaler(Given(context, "context").native, raw);
    raw.handle.Dispose();
    Safe.KeepWhat(context.Safe);
  }

  /// <summary>The factor to multiply the loss with. It does not change until <see cref="Update"/>.</summary>
  [OfC("st_loss_scaler_scale")]
  public double Scale { get { return native.scale(); } }

  /// <summary>Divides all gradients of the step by the scale, in place. Returns whether all are finite.</summary>
  [OfC("st_loss_scaler_unscale")]
  public bool Unscale(params View[] gradients) {
    using (Pins pins = Pins.Borrow(gradients, "gradients")) return native.unscale(pins.All);
  }

  /// <summary>Whether the optimizer should run now.</summary>
  [OfC("st_loss_scaler_step")]
  public bool Step() { return native.step(); }

  /// <summary>Chooses the next scale. Returns whether this step was skipped.</summary>
  [OfC("st_loss_scaler_update")]
  public bool Update() { return native.update(); }

  /// <summary>The state as JSON, for a checkpoint; <see cref="Restore"/> continues from it.</summary>
  [OfC("st_loss_scaler_state")]
  public string State() {
    lock (Safe) return native.state();
  }

  /// <summary>Continues from a <see cref="State"/>.</summary>
  [OfC("st_loss_scaler_restore")]
  public void Restore(string state) { native.restore(Given(state, "state")); }
}

}
