package org.scaletrain;

/** What a {@link Checkpoint} is made with: which checkpoints stay, and how they are written. */
public final class CheckpointOptions {
  private final org.scaletrain.internal.CheckpointOptions raw;

  /** All defaults. */
  public CheckpointOptions() {
    org.scaletrain.internal.NativeLibrary.require();
    raw = new org.scaletrain.internal.CheckpointOptions();
  }

  /**
   * It lists, verifies and loads only, also beside a process that saves; takes no lock. Ranks other than 0 save their pieces by it ({@link
   * Trainer#save}).
   */
  public CheckpointOptions readOnly() {
    raw.setRead_only(true);
    return this;
  }

  /** 3, the newest so many stay; 0: all. */
  public CheckpointOptions keepLast(long count) {
    raw.setKeep_last(count);
    return this;
  }

  /** 0; and each whose step is a multiple of it. */
  public CheckpointOptions keepEvery(long steps) {
    raw.setKeep_every(steps);
    return this;
  }

  /** 0; and the best so many by a number in their metadata or training state, such as "validation_loss", lower being better. */
  public CheckpointOptions keepBest(long count, String by) {
    return keepBest(count, by, false);
  }

  /** The same; {@code higherIsBetter}: of an accuracy. */
  public CheckpointOptions keepBest(long count, String by, boolean higherIsBetter) {
    raw.setKeep_best(count);
    raw.setBest(Handle.given(by, "CheckpointOptions.keepBest"));
    raw.setBest_is_higher(higherIsBetter);
    return this;
  }

  /** 0; saves that may wait behind the one being written, each with a copy of its own; where more come, the call waits. */
  public CheckpointOptions queue(int saves) {
    raw.setQueue(saves);
    return this;
  }

  /** What the writing may take of the disk; 0: all there is. */
  public CheckpointOptions bytesPerSecond(double most) {
    raw.setBytes_per_second(most);
    return this;
  }

  /** 4 GiB: a file takes tensors up to so many bytes, and one that is larger alone. */
  public CheckpointOptions fileBytes(long most) {
    raw.setFile_bytes(most);
    return this;
  }

  org.scaletrain.internal.CheckpointOptions raw() {
    return raw;
  }
}
