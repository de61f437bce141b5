package org.scaletrain;

import java.util.ArrayList;
import java.util.List;

/** How {@link Model#read} finds parameters by name. */
public final class ReadOptions {
  private boolean partial;
  private final List<String> from = new ArrayList<>();
  private final List<String> to = new ArrayList<>();

  /** All parameters by their own names. */
  public ReadOptions() {}

  /** Read what fits by name, and report the rest. */
  public ReadOptions partial() {
    partial = true;
    return this;
  }

  /** A name of the stream by a name of the model; {@code *}, once in each, stands for any text. */
  public ReadOptions rename(String from, String to) {
    this.from.add(from);
    this.to.add(to);
    return this;
  }

  ReadReport read(org.scaletrain.internal.Model model, Object stream) {
    return (ReadReport) model.read_from(stream, partial, from.toArray(String[]::new), to.toArray(String[]::new));
  }
}
