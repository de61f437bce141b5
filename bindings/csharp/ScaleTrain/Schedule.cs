namespace ScaleTrain {

/// <summary>The learning rate as a function of successful steps, by itself.</summary>
/// <example><code>double lr = new Schedule(new { schedule = "cosine", lr = 1e-3, warmup = 20, lr_steps = 1000 }).At(k);</code></example>
public sealed class Schedule : Handle {
  private readonly Native.Schedule native;
  internal override NativeHandle Safe { get { return native.handle; } }

  /// <summary>JSON text, a dictionary or an anonymous object; keys, formulas and defaults are those of <c>schedule.h</c>.</summary>
  [OfC("st_schedule_create")]
  public Schedule(object settings) {
    Loader.Require();
    native = new Native.Schedule(Json.OfOptions(Given(settings, "settings")));
  }

  /// <summary>Of the step after <paramref name="step"/> successful ones, from 0 on.</summary>
  [OfC("st_schedule_at")]
  public double At(long step) { return native.at(step); }
}

}
