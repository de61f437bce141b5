package org.scaletrain;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** How {@link Model#read}, {@link Model#readFile}, {@link Model#load}, {@link Checkpoint#load} and {@link Trainer#resume} find tensors by name. */
public final class ReadOptions {
  private boolean partial;
  private boolean overwrite;
  private final List<String> from = new ArrayList<>();
  private final List<String> to = new ArrayList<>();
  private final List<String> names = new ArrayList<>();

  /** All by their own names. */
  public ReadOptions() {}

  /** Read what fits by name, and report the rest. */
  public ReadOptions partial() {
    partial = true;
    return this;
  }

  /** A name of what is read by a name of the model; {@code *}, once in each, stands for any text. */
  public ReadOptions rename(String from, String to) {
    this.from.add(from);
    this.to.add(to);
    return this;
  }

  /** Several at once: {@link Model#gpt2Names}. */
  public ReadOptions rename(Map<String, String> names) {
    Handle.given(names, "ReadOptions.rename").forEach(this::rename);
    return this;
  }

  /** Only those of the model whose names fit this pattern, or another that was given: {@code "block.*.weight"}. */
  public ReadOptions only(String pattern) {
    names.add(pattern);
    return this;
  }

  /**
   * Of {@link Checkpoint#load} alone: reads once, straight into the arrays, and twice as fast. After a {@link CheckpointError} they may then
   * hold a mixture of what was there and what was read.
   */
  public ReadOptions overwrite() {
    overwrite = true;
    return this;
  }

  ReadReport read(org.scaletrain.internal.Model model, Object stream) {
    return (ReadReport) model.read_from(stream, partial, texts(from), texts(to), texts(names));
  }

  ReadReport readFile(org.scaletrain.internal.Model model, String path) {
    return (ReadReport) model.read_from_file(path, partial, texts(from), texts(to), texts(names));
  }

  LoadReport load(org.scaletrain.internal.Model model, org.scaletrain.internal.Checkpoint checkpoint, String name) {
    return (LoadReport) model.load_from(checkpoint, Checkpoint.named(name), partial, texts(from), texts(to), texts(names));
  }

  LoadReport load(org.scaletrain.internal.Checkpoint checkpoint, Batch arrays, String name) {
    return (LoadReport) checkpoint.load_to(arrays.pairs(), Checkpoint.named(name), overwrite, partial, texts(from), texts(to), texts(names));
  }

  LoadReport resume(org.scaletrain.internal.Trainer trainer, org.scaletrain.internal.Checkpoint checkpoint, String name) {
    return (LoadReport) trainer.resume_from(checkpoint, Checkpoint.named(name), partial, texts(from), texts(to), texts(names));
  }

  private static String[] texts(List<String> list) {
    return list.toArray(String[]::new);
  }
}
