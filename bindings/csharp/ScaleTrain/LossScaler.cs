namespace ScaleTrain {

/// <summary>Defaults: those of torch.amp.GradScaler, and a minimum.</summary>
public sealed class LossScalerOptions {
  /// <summary>false: the scale is 1; gradients are looked at all the same.</summary>
  public bool Enabled { get; set; } = true;
  /// <summary>false: the scale stays.</summary>
  public bool Dynamic { get; set; } = true;
  /// <summary>0: the context's.</summary>
  public int Threads { get; set; }
  /// <summary>The first scale.</summary>
  public double InitialScale { get; set; } = 65536;
  /// <summary>After GrowthInterval good steps.</summary>
  public double GrowthFactor { get; set; } = 2;
  /// <summary>After an overflow.</summary>
  public double BackoffFactor { get; set; } = 0.5;
  /// <summary>Steps without an overflow.</summary>
  public long GrowthInterval { get; set; } = 2000;
  /// <summary>It falls no lower.</summary>
  public double MinimumScale { get; set; } = 1;
  /// <summary>The overflow of a row that backs off.</summary>
  public long Hysteresis { get; set; } = 1;
  /// <summary>A row ends with each step without one, not with growth alone.</summary>
  public bool ConsecutiveHysteresis { get; set; }
}

/// <summary>Loss scaling by itself. A step is <see cref="Scale"/>, backward, <see cref="Unscale"/>, clip, <see cref="Step"/>, <see cref="Update"/>; what comes out of
/// turn throws <see cref="WrongStateException"/>.</summary>
public sealed class LossScaler : Handle {
  internal readonly Native.LossScaler native;
  internal override NativeHandle Safe { get { return native.handle; } }

  /// <summary>options null: the defaults.</summary>
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

  /// <summary>What to multiply the loss with; the same until <see cref="Update"/>.</summary>
  [OfC("st_loss_scaler_scale")]
  public double Scale { get { return native.scale(); } }

  /// <summary>Divides all of the step's gradients in place; whether all are finite.</summary>
  [OfC("st_loss_scaler_unscale")]
  public bool Unscale(params View[] gradients) {
    using (Pins pins = Pins.Borrow(gradients, "gradients")) return native.unscale(pins.All);
  }

  /// <summary>Whether the optimizer is to run now.</summary>
  [OfC("st_loss_scaler_step")]
  public bool Step() { return native.step(); }

  /// <summary>Chooses the next scale; whether this step was skipped.</summary>
  [OfC("st_loss_scaler_update")]
  public bool Update() { return native.update(); }

  /// <summary>JSON, for a checkpoint; <see cref="Restore"/> goes on from it.</summary>
  [OfC("st_loss_scaler_state")]
  public string State() {
    lock (Safe) return native.state();
  }

  /// <summary>Goes on from what <see cref="State"/> gave.</summary>
  [OfC("st_loss_scaler_restore")]
  public void Restore(string state) { native.restore(Given(state, "state")); }
}

}
