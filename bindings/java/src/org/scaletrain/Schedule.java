package org.scaletrain;

import java.util.Map;
import org.scaletrain.internal.NativeLibrary;

/** The learning rate as a function of successful steps, by itself. */
public final class Schedule extends Handle {
  private final org.scaletrain.internal.Schedule raw;

  /**
   * JSON: {@code {"schedule": "cosine", "lr": 1e-3, "warmup": 20, "lr_steps": 1000}}; keys and formulas are those of {@code schedule.h}.
   */
  @OfC("st_schedule_create")
  public Schedule(String json) {
    NativeLibrary.require();
    raw = new org.scaletrain.internal.Schedule(json);
  }

  /** The same as a map. */
  public Schedule(Map<String, ?> settings) {
    this(Json.text(settings));
  }

  /** Of the step after {@code step} successful ones, from 0 on. */
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
