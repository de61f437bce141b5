package org.scaletrain;

import java.util.Map;
import org.scaletrain.internal.NativeLibrary;

/** The learning rate as a function of the number of successful steps, as a separate part. */
public final class Schedule extends Handle {
  private final org.scaletrain.internal.Schedule raw;

  /**
   * Settings as JSON, for example {@code {"schedule": "cosine", "lr": 1e-3, "warmup": 20, "lr_steps": 1000}}. {@code schedule.h} documents the
   * keys and formulas.
   */
  @OfC("st_schedule_create")
  public Schedule(String json) {
    NativeLibrary.require();
    raw = new org.scaletrain.internal.Schedule(json);
  }

  /** Settings as a map. */
  public Schedule(Map<String, ?> settings) {
    this(Json.text(settings));
  }

  /** The learning rate of the step that follows {@code step} successful steps; {@code step} starts at 0. */
  @OfC("st_schedule_at")
  public double at(long step) {
    return raw.at(step);
  }

  @Override
  @OfC("st_schedule_destroy")
  public void close() {
    raw.close();
  }
}
