using System;
using System.Threading;
using System.Threading.Tasks;

namespace ScaleTrain {

/// <summary>Which checkpoints of a run are kept and how they are written.</summary>
public sealed class CheckpointOptions {
  /// <summary>Allows only list, verify and load. Takes no lock, so it works while another process saves. Ranks other than 0 use it to save their
  /// shards (<see cref="Trainer.SaveCollective"/>).</summary>
  public bool ReadOnly { get; set; }
  /// <summary>Number of newest checkpoints of this run that are kept; 0 keeps all. Those that were in the folder are another run's until
  /// one was loaded or resumed.</summary>
  public long KeepLast { get; set; } = 3;
  /// <summary>Also keeps each checkpoint whose step is a multiple of this; 0 for none.</summary>
  public long KeepEvery { get; set; }
  /// <summary>Also keeps this number of best checkpoints by <see cref="Best"/>; 0 for none.</summary>
  public long KeepBest { get; set; }
  /// <summary>The name of a number in the metadata or the training state, such as "validation_loss".</summary>
  public string Best { get; set; }
  /// <summary>Whether higher is better; false means lower.</summary>
  public bool BestIsHigher { get; set; }
  /// <summary>Saves that may queue while one is being written, each with its own snapshot. If the queue is full, the call waits.</summary>
  public int Queue { get; set; }
  /// <summary>Limit of the disk bandwidth that saves use; 0 for no limit.</summary>
  public double BytesPerSecond { get; set; }
  /// <summary>Maximum size of a file. A tensor that is larger gets a file of its own.</summary>
  public long FileBytes { get; set; } = 4L << 30;
}

/// <summary>The checkpoint folder of a run. Saves write to it, also in the background; loads use the newest valid checkpoint and skip damaged or
/// unfinished ones. With a trainer, use <see cref="Trainer.Save"/>, <see cref="Trainer.SaveEvery"/> and <see cref="Trainer.Resume"/>. A program
/// with its own loop saves named arrays. Weights and state are safetensors files, which other tools can read.</summary>
/// <remarks><see cref="Progress"/> may be read from any thread at any time.</remarks>
public sealed class Checkpoint : Handle {
  internal readonly Native.Checkpoint native;
  internal override NativeHandle Safe { get { return native.handle; } }

  /// <summary>Creates the folder, locks it until this object is disposed, and removes leftovers of a killed save. Throws
  /// <see cref="BusyException"/> with the name of the process that already saves there.</summary>
  [OfC("st_checkpoint_create")]
  public Checkpoint(Context context, string folder, CheckpointOptions options = null) {
    CheckpointOptions wish = options ?? new CheckpointOptions();
    var raw = new Native.CheckpointOptions {
      read_only = wish.ReadOnly, keep_last = wish.KeepLast, keep_every = wish.KeepEvery, keep_best = wish.KeepBest, best = wish.Best ?? "",
      best_is_higher = wish.BestIsHigher, queue = wish.Queue, bytes_per_second = wish.BytesPerSecond, file_bytes = wish.FileBytes
    };
    try {
      native = new Native.Checkpoint(Given(context, "context").native, Given(folder, "folder"), raw);
    } finally {
      raw.handle.Dispose();
    }
    Safe.KeepWhat(context.Safe);
  }

  /// <summary>Saves the arrays as they are now. Returns when everything is on the disk. metadata has texts and numbers of the program, as JSON
  /// text, a dictionary or an anonymous object.</summary>
  [OfC("st_checkpoint_save")]
  public void Save(long step, Batch arrays, object metadata = null) {
    using (Pins pins = Pins.Borrow(Given(arrays, "arrays"))) native.save(step, pins.All, Json.OfOptions(metadata));
  }

  /// <summary>Copies the arrays and returns; the files are written in the background. The <see cref="Pending"/> reports errors.</summary>
  public Pending BeginSave(long step, Batch arrays, object metadata = null) {
    using (Pins pins = Pins.Borrow(Given(arrays, "arrays"))) return new Pending(native.save_async(step, pins.All, Json.OfOptions(metadata)), Safe);
  }

  /// <summary>The same as a task. The arrays have been copied when this returns.</summary>
  public Task SaveAsync(long step, Batch arrays, object metadata = null) { return BeginSave(step, arrays, metadata).AsTask(); }

  /// <summary>Loads a checkpoint into these arrays, whose dims must be those of the tensors; floating types are converted. name is for example
  /// "step-00000120"; null means the newest valid checkpoint. All bytes are verified. After an error no array has changed, except with
  /// <see cref="LoadOptions.Overwrite"/>.</summary>
  [OfC("st_checkpoint_load")]
  public LoadReport Load(Batch to, string name = null, LoadOptions options = null) {
    LoadOptions.Raw raw = LoadOptions.Of(options);
    using (Pins pins = Pins.Borrow(Given(to, "to")))
      return new LoadReport(native.load_to(pins.All, name ?? "", raw.Overwrite, raw.Partial, raw.From, raw.Into, raw.Names));
  }

  /// <summary>The folder's checkpoints as JSON, newest first, each with "name", "step" and "problem".</summary>
  [OfC("st_checkpoint_list")]
  public string List() {
    using (Turn.Of(Safe, "Checkpoint.List")) return native.list();
  }

  /// <summary>The manifest of a checkpoint as JSON, without its checksums; a null name means the newest checkpoint.</summary>
  [OfC("st_checkpoint_inspect")]
  public string Inspect(string name = null) {
    using (Turn.Of(Safe, "Checkpoint.Inspect")) return native.inspect(name ?? "");
  }

  /// <summary>Reads a whole checkpoint; a null name means the newest. In the returned JSON, an empty "problems" list means that every byte is as
  /// it was written.</summary>
  [OfC("st_checkpoint_verify")]
  public string Verify(string name = null) {
    using (Turn.Of(Safe, "Checkpoint.Verify")) return native.verify(name ?? "");
  }

  /// <summary>The digest, 32 hex digits; for a trainer's checkpoint it equals <see cref="Trainer.Digest"/>. A null name means the newest
  /// checkpoint.</summary>
  [OfC("st_checkpoint_hash")]
  public string Hash(string name = null) {
    using (Turn.Of(Safe, "Checkpoint.Hash")) return native.hash(name ?? "");
  }

  /// <summary>Rewrites a checkpoint (a null name: the newest valid one) into a new or empty folder, as <paramref name="shards"/> files of each
  /// kind. With 0 shards tensors are written whole.</summary>
  [OfC("st_checkpoint_reshard")]
  public void Reshard(string folder, int shards = 0, string name = null) { native.reshard(Given(folder, "folder"), shards, name ?? ""); }

  /// <summary>Writes the weights of a checkpoint (a null name: the newest valid one) as one safetensors file. With everything, it also holds the
  /// optimizer state.</summary>
  [OfC("st_checkpoint_export")]
  public void Export(string path, bool everything = false, string name = null) { native.export_to(Given(path, "path"), everything, name ?? ""); }

  /// <summary>Waits until no save is running. Throws the error of a failed save if it has not been reported yet; each is reported once.</summary>
  [OfC("st_checkpoint_wait")]
  public void Wait() { native.wait(); }

  /// <summary>The same, for at most this long; false if a save is still running. <see cref="Timeout.InfiniteTimeSpan"/> means no limit.</summary>
  public bool Wait(TimeSpan most) {
    if (most != Timeout.InfiniteTimeSpan && most < TimeSpan.FromDays(10000)) return native.wait_for((long)Math.Max(0, most.TotalMilliseconds));
    Wait();
    return true;
  }

  /// <summary>Progress of the saves.</summary>
  [OfC("st_checkpoint_progress")]
  public SaveProgress Progress { get { return SaveProgress.Of(native.progress()); } }
}

}
