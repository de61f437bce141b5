package org.scaletrain;

/** Options of a {@link Checkpoint}: which checkpoints are kept and how they are written. */
public final class CheckpointOptions {
  private final org.scaletrain.internal.CheckpointOptions raw;

  /** All defaults. */
  public CheckpointOptions() {
    org.scaletrain.internal.NativeLibrary.require();
    raw = new org.scaletrain.internal.CheckpointOptions();
  }

  /**
   * Allows only list, verify and load. Takes no lock, so it works while another process saves. Ranks other than 0 use it to save their
   * shards ({@link Trainer#save}).
   */
  public CheckpointOptions readOnly() {
    raw.setRead_only(true);
    return this;
  }

  /**
   * Keeps the newest {@code count} checkpoints of this run. Default 3; 0 keeps all. Those that were in the folder are another run's until one
   * was loaded or resumed.
   */
  public CheckpointOptions keepLast(long count) {
    raw.setKeep_last(count);
    return this;
  }

  /** Also keeps each checkpoint whose step is a multiple of {@code steps}. Default 0: none. */
  public CheckpointOptions keepEvery(long steps) {
    raw.setKeep_every(steps);
    return this;
  }

  /**
   * Also keeps the best {@code count} checkpoints by a number in their metadata or training state, such as "validation_loss"; lower is
   * better. Default 0: none.
   */
  public CheckpointOptions keepBest(long count, String by) {
    return keepBest(count, by, false);
  }

  /** The same; set {@code higherIsBetter} for a number such as an accuracy. */
  public CheckpointOptions keepBest(long count, String by, boolean higherIsBetter) {
    raw.setKeep_best(count);
    raw.setBest(Handle.given(by, "CheckpointOptions.keepBest"));
    raw.setBest_is_higher(higherIsBetter);
    return this;
  }

  /** Saves that may queue while one is being written, each with its own snapshot. If the queue is full, the call waits. Default 0. */
  public CheckpointOptions queue(int saves) {
    raw.setQueue(saves);
    return this;
  }

  /** Limit of the disk bandwidth that saves use. Default 0: no limit. */
  public CheckpointOptions bytesPerSecond(double most) {
    raw.setBytes_per_second(most);
    return this;
  }

  /** Maximum size of a file. A tensor that is larger gets a file of its own. Default 4 GiB. */
  public CheckpointOptions fileBytes(long most) {
    raw.setFile_bytes(most);
    return this;
  }

  org.scaletrain.internal.CheckpointOptions raw() {
    return raw;
  }
}
