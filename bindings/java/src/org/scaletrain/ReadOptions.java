package org.scaletrain;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * How tensors are matched by name in {@link Model#read}, {@link Model#readFile}, {@link Model#load}, {@link Checkpoint#load} and
 * {@link Trainer#resume}.
 */
public final class ReadOptions {
  private boolean partial;
  private boolean overwrite;
  private final List<String> from = new ArrayList<>();
  private final List<String> to = new ArrayList<>();
  private final List<String> names = new ArrayList<>();

  /** All tensors, by their own names. */
  public ReadOptions() {}

  /** Reads the tensors whose names match and reports the others. */
  public ReadOptions partial() {
    partial = true;
    return this;
  }

  /** Maps a name in the source to a name of the model. {@code *}, at most once in each, matches any text. */
  public ReadOptions rename(String from, String to) {
    this.from.add(from);
    this.to.add(to);
    return this;
  }

  /** Several renames, for example {@link Model#gpt2Names}. */
  public ReadOptions rename(Map<String, String> names) {
    Handle.given(names, "ReadOptions.rename").forEach(this::rename);
    return this;
  }

  /** Reads only model tensors whose names match this or another pattern that was added, for example {@code "block.*.weight"}. */
  public ReadOptions only(String pattern) {
    names.add(pattern);
    return this;
  }

  /**
   * Only for {@link Checkpoint#load}: reads the files once, directly into the arrays, which is twice as fast. After a {@link CheckpointError}
   * the arrays may hold a mixture of old and new values.
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
