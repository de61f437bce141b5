package org.scaletrain;

import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;

/**
 * The checkpoint folder of a run. Saves write to it, also in the background; loads use the newest valid checkpoint and skip damaged or
 * unfinished ones. With a trainer, use {@link Trainer#save}, {@link Trainer#saveEvery} and {@link Trainer#resume}. A program with its own
 * loop saves named arrays. Weights and state are safetensors files, which other tools can read.
 *
 * <p>One call at a time. {@link #progress} may be called from any thread.
 */
public final class Checkpoint extends Handle {
  private static final long NANOSECONDS = 1_000_000;  // per millisecond

  final org.scaletrain.internal.Checkpoint raw;

  /** With all defaults: the newest 3 checkpoints are kept. */
  public Checkpoint(Context context, Path folder) {
    this(context, folder, new CheckpointOptions());
  }

  /**
   * Creates the folder, locks it until this object is closed, and removes leftovers of a killed save. Throws {@link Busy} with the name of
   * the process that already saves there.
   */
  @OfC("st_checkpoint_create")
  public Checkpoint(Context context, Path folder, CheckpointOptions options) {
    raw = new org.scaletrain.internal.Checkpoint(given(context, "Checkpoint").raw, given(folder, "Checkpoint: folder").toString(),
        given(options, "Checkpoint: options").raw());
    raw.keeps = context.raw;
  }

  /** Saves the arrays as they are now. Returns when everything is on the disk. */
  public void save(long step, Batch arrays) {
    save(step, arrays, Map.of());
  }

  /** The same, with metadata: texts and numbers of the program. */
  @OfC("st_checkpoint_save")
  public void save(long step, Batch arrays, Map<String, ?> metadata) {
    raw.save(step, given(arrays, "Checkpoint.save").pairs(), Json.options(metadata));
  }

  /** Copies the arrays and returns; the files are written in the background. The {@link Pending} reports errors. */
  public Pending beginSave(long step, Batch arrays, Map<String, ?> metadata) {
    return new Pending(raw.save_async(step, given(arrays, "Checkpoint.beginSave").pairs(), Json.options(metadata)), raw);
  }

  /** Loads the newest valid checkpoint into these arrays. The checkpoint must hold exactly these arrays. */
  public LoadReport load(Batch to) {
    return load(to, null, new ReadOptions());
  }

  /**
   * Loads a checkpoint into these arrays, whose dims must be those of the tensors; floating types are converted. {@code name} is for
   * example "step-00000120"; null means the newest valid checkpoint. All bytes are verified. After an error no array has changed, except
   * with {@link ReadOptions#overwrite}.
   */
  @OfC("st_checkpoint_load")
  public LoadReport load(Batch to, String name, ReadOptions options) {
    return given(options, "Checkpoint.load").load(raw, given(to, "Checkpoint.load"), name);
  }

  /** The folder's checkpoints, newest first, each with "name", "step" and "problem". */
  @OfC("st_checkpoint_list")
  @SuppressWarnings("unchecked")
  public List<Map<String, Object>> list() {
    return (List<Map<String, Object>>) Json.parse(raw.list());
  }

  /** The manifest of a checkpoint without its checksums; null means the newest checkpoint. */
  @OfC("st_checkpoint_inspect")
  @SuppressWarnings("unchecked")
  public Map<String, Object> inspect(String name) {
    return (Map<String, Object>) Json.parse(raw.inspect(named(name)));
  }

  /** Reads a whole checkpoint; null means the newest. An empty "problems" list means that every byte is as it was written. */
  @OfC("st_checkpoint_verify")
  @SuppressWarnings("unchecked")
  public Map<String, Object> verify(String name) {
    return (Map<String, Object>) Json.parse(raw.verify(named(name)));
  }

  /** The digest, 32 hex digits; for a trainer's checkpoint it equals {@link Trainer#digest}. null means the newest checkpoint. */
  @OfC("st_checkpoint_hash")
  public String hash(String name) {
    return raw.hash(named(name));
  }

  /**
   * Rewrites a checkpoint (null: the newest valid one) into a new or empty folder, as {@code shards} files of each kind. With 0 shards
   * tensors are written whole.
   */
  @OfC("st_checkpoint_reshard")
  public void reshard(Path folder, int shards, String name) {
    raw.reshard(given(folder, "Checkpoint.reshard").toString(), shards, named(name));
  }

  /**
   * Writes the weights of a checkpoint (null: the newest valid one) as one safetensors file. With {@code everything} it also holds the
   * optimizer state.
   */
  @OfC("st_checkpoint_export")
  public void export(Path path, boolean everything, String name) {
    raw.export_to(given(path, "Checkpoint.export").toString(), everything, named(name));
  }

  /** Waits until no save is running. Throws the error of a failed save if it has not been reported yet; each is reported once. */
  @OfC("st_checkpoint_wait")
  public void await() {
    raw.wait_for_end();
  }

  /** The same, for at most this long; false if a save is still running. */
  @OfC("st_checkpoint_wait")
  public boolean await(Duration most) {
    return raw.wait_for(Call.nanoseconds(given(most, "Checkpoint.await")) / NANOSECONDS);
  }

  /** Progress of the saves. May be called from any thread. */
  @OfC("st_checkpoint_progress")
  public SaveProgress progress() {
    return (SaveProgress) raw.progress();
  }

  /** Waits for the running saves. */
  @Override
  @OfC("st_checkpoint_destroy")
  public void close() {
    raw.close();
  }

  /** "" stands for the newest valid checkpoint. */
  static String named(String name) {
    return name == null ? "" : name;
  }
}
