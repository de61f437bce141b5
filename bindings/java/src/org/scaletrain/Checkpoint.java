package org.scaletrain;

import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;

/**
 * A run's folder of checkpoints: saved into, in the background too, and loaded from; the newest that is whole is what counts, whatever
 * happened to a newer one. For a trainer: {@link Trainer#save}, {@link Trainer#saveEvery}, {@link Trainer#resume}. For a program with its
 * own loop: its arrays by name. Weights and state are safetensors files, which other tools read.
 *
 * <p>One call at a time; {@link #progress} is for any thread.
 */
public final class Checkpoint extends Handle {
  private static final long NANOSECONDS = 1_000_000;  // of a millisecond

  final org.scaletrain.internal.Checkpoint raw;

  /** With all defaults: the newest 3 stay. */
  public Checkpoint(Context context, Path folder) {
    this(context, folder, new CheckpointOptions());
  }

  /**
   * Makes the folder, locks it until it is closed, and removes what a killed save left. {@link Busy} names the process that saves there
   * already.
   */
  @OfC("st_checkpoint_create")
  public Checkpoint(Context context, Path folder, CheckpointOptions options) {
    raw = new org.scaletrain.internal.Checkpoint(given(context, "Checkpoint").raw, given(folder, "Checkpoint: folder").toString(),
        given(options, "Checkpoint: options").raw());
    raw.keeps = context.raw;
  }

  /** The arrays as they are now; returns when all is on the disk. */
  public void save(long step, Batch arrays) {
    save(step, arrays, Map.of());
  }

  /** The same, with texts and numbers of the program's own. */
  @OfC("st_checkpoint_save")
  public void save(long step, Batch arrays, Map<String, ?> metadata) {
    raw.save(step, given(arrays, "Checkpoint.save").pairs(), Json.options(metadata));
  }

  /** Copies the arrays and returns; the files are written while the program goes on. An error is the pending one's. */
  public Pending beginSave(long step, Batch arrays, Map<String, ?> metadata) {
    return new Pending(raw.save_async(step, given(arrays, "Checkpoint.beginSave").pairs(), Json.options(metadata)), raw);
  }

  /** Into these arrays, from the newest checkpoint that is whole: each must be in it, and nothing else. */
  public LoadReport load(Batch to) {
    return load(to, null, new ReadOptions());
  }

  /**
   * Into these arrays, which have the tensors' dims; floating types are converted. name: "step-00000120"; null: the newest that is whole.
   * All bytes are checked on the way; after an error no array has changed, but with {@link ReadOptions#overwrite}.
   */
  @OfC("st_checkpoint_load")
  public LoadReport load(Batch to, String name, ReadOptions options) {
    return given(options, "Checkpoint.load").load(raw, given(to, "Checkpoint.load"), name);
  }

  /** The folder's checkpoints, newest first: "name", "step", "problem". */
  @OfC("st_checkpoint_list")
  @SuppressWarnings("unchecked")
  public List<Map<String, Object>> list() {
    return (List<Map<String, Object>>) Json.parse(raw.list());
  }

  /** The manifest of one, without its checksums; null: of the newest. */
  @OfC("st_checkpoint_inspect")
  @SuppressWarnings("unchecked")
  public Map<String, Object> inspect(String name) {
    return (Map<String, Object>) Json.parse(raw.inspect(named(name)));
  }

  /** Reads all of one; null: of the newest. "problems": an empty list says that every byte is as it was written. */
  @OfC("st_checkpoint_verify")
  @SuppressWarnings("unchecked")
  public Map<String, Object> verify(String name) {
    return (Map<String, Object>) Json.parse(raw.verify(named(name)));
  }

  /** 32 hex digits: of a trainer's checkpoint its {@link Trainer#digest}; null: of the newest. */
  @OfC("st_checkpoint_hash")
  public String hash(String name) {
    return raw.hash(named(name));
  }

  /**
   * Writes one (null: the newest that is whole) anew into a folder that is not there or empty: as {@code shards} files of each kind, or
   * with 0 as whole tensors.
   */
  @OfC("st_checkpoint_reshard")
  public void reshard(Path folder, int shards, String name) {
    raw.reshard(given(folder, "Checkpoint.reshard").toString(), shards, named(name));
  }

  /** Writes the weights of one (null: the newest that is whole) as one safetensors file; everything: the optimizer's state too. */
  @OfC("st_checkpoint_export")
  public void export(Path path, boolean everything, String name) {
    raw.export_to(given(path, "Checkpoint.export").toString(), everything, named(name));
  }

  /** Until no save is under way. Throws the error of one that nobody was told of yet, once. */
  @OfC("st_checkpoint_wait")
  public void await() {
    raw.wait_for_end();
  }

  /** At most so long; false: one still is. */
  @OfC("st_checkpoint_wait")
  public boolean await(Duration most) {
    return raw.wait_for(Call.nanoseconds(given(most, "Checkpoint.await")) / NANOSECONDS);
  }

  /** How far the saves are; from any thread. */
  @OfC("st_checkpoint_progress")
  public SaveProgress progress() {
    return (SaveProgress) raw.progress();
  }

  /** Waits for the saves that are under way. */
  @Override
  @OfC("st_checkpoint_destroy")
  public void close() {
    raw.close();
  }

  /** "": the newest that is whole. */
  static String named(String name) {
    return name == null ? "" : name;
  }
}
