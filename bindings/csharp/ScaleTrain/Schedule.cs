namespace ScaleTrain {

/// <summary>The learning rate as a function of the number of successful steps, as a separate part.</summary>
/// <example><code>double lr = new Schedule(new { schedule = "cosine", lr = 1e-3, warmup = 20, lr_steps = 1000 }).At(k);</code></example>
public sealed class Schedule : Handle {
  private readonly Native.Schedule native;
  internal override NativeHandle Safe { get { return native.handle; } }

  /// <summary>Takes JSON text, a dictionary or an anonymous object. <c>schedule.h</c> documents the keys, formulas and defaults.</summary>
  [OfC("st_schedule_create")]
  public Schedule(object settings) {
    Loader.Require();
    native = new Native.Schedule(Json.OfOptions(Given(settings, "settings")));
  }

  /// <summary>The learning rate of the step that follows <paramref name="step"/> successful steps; step starts at 0.</summary>
  [OfC("st_schedule_at")]
  public double At(long step) { return native.at(step); }
}

}
