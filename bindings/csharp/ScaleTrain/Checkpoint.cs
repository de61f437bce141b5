using System;
using System.Threading;
using System.Threading.Tasks;

namespace ScaleTrain {

/// <summary>Which checkpoints of a run stay, and how they are written.</summary>
public sealed class CheckpointOptions {
  /// <summary>It lists, verifies and loads only, also beside a process that saves; takes no lock. Ranks other than 0 save their pieces by it
  /// (<see cref="Trainer.Save"/>).</summary>
  public bool ReadOnly { get; set; }
  /// <summary>The newest so many stay; 0: all.</summary>
  public long KeepLast { get; set; } = 3;
  /// <summary>And each whose step is a multiple of it; 0: none.</summary>
  public long KeepEvery { get; set; }
  /// <summary>And the best so many by <see cref="Best"/>; 0: none.</summary>
  public long KeepBest { get; set; }
  /// <summary>A number in the metadata or the training state, "validation_loss".</summary>
  public string Best { get; set; }
  /// <summary>false: lower is better.</summary>
  public bool BestIsHigher { get; set; }
  /// <summary>Saves that may wait behind the one being written, each with a copy of its own; where more come, the call waits.</summary>
  public int Queue { get; set; }
  /// <summary>What the writing may take of the disk; 0: all there is.</summary>
  public double BytesPerSecond { get; set; }
  /// <summary>A file takes tensors up to so many bytes, and one that is larger alone.</summary>
  public long FileBytes { get; set; } = 4L << 30;
}

/// <summary>A run's folder of checkpoints: saved into, in the background too, and loaded from; the newest that is whole is what counts, whatever
/// happened to a newer one. For a trainer: <see cref="Trainer.Save"/>, <see cref="Trainer.SaveEvery"/>, <see cref="Trainer.Resume"/>. For a program with
/// its own loop: its arrays by name. Weights and state are safetensors files, which other tools read.</summary>
/// <remarks><see cref="Progress"/> is for any thread at any time.</remarks>
public sealed class Checkpoint : Handle {
  internal readonly Native.Checkpoint native;
  internal override NativeHandle Safe { get { return native.handle; } }

  /// <summary>Makes the folder, locks it until it is disposed of, and removes what a killed save left. <see cref="BusyException"/> names the process that
  /// saves there already.</summary>
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

  /// <summary>The arrays as they are now; returns when all is on the disk. metadata: texts and numbers of the program's own; JSON text, a dictionary or an
  /// anonymous object.</summary>
  [OfC("st_checkpoint_save")]
  public void Save(long step, Batch arrays, object metadata = null) {
    using (Pins pins = Pins.Borrow(Given(arrays, "arrays"))) native.save(step, pins.All, Json.OfOptions(metadata));
  }

  /// <summary>Copies the arrays and returns; the files are written while the program goes on. An error is the pending one's.</summary>
  public Pending BeginSave(long step, Batch arrays, object metadata = null) {
    using (Pins pins = Pins.Borrow(Given(arrays, "arrays"))) return new Pending(native.save_async(step, pins.All, Json.OfOptions(metadata)), Safe);
  }

  /// <summary>The same as a task: the arrays are copied when this returns.</summary>
  public Task SaveAsync(long step, Batch arrays, object metadata = null) { return BeginSave(step, arrays, metadata).AsTask(); }

  /// <summary>Into these arrays, which have the tensors' dims; floating types are converted. name: "step-00000120"; null: the newest that is whole. All bytes
  /// are checked on the way; after an error no array has changed, but with <see cref="LoadOptions.Overwrite"/>.</summary>
  [OfC("st_checkpoint_load")]
  public LoadReport Load(Batch to, string name = null, LoadOptions options = null) {
    LoadOptions.Raw raw = LoadOptions.Of(options);
    using (Pins pins = Pins.Borrow(Given(to, "to")))
      return new LoadReport(native.load_to(pins.All, name ?? "", raw.Overwrite, raw.Partial, raw.From, raw.Into, raw.Names));
  }

  /// <summary>JSON: the folder's checkpoints, newest first, with "name", "step" and "problem".</summary>
  [OfC("st_checkpoint_list")]
  public string List() {
    using (Turn.Of(Safe, "Checkpoint.List")) return native.list();
  }

  /// <summary>JSON: the manifest of one, without its checksums; name null: of the newest.</summary>
  [OfC("st_checkpoint_inspect")]
  public string Inspect(string name = null) {
    using (Turn.Of(Safe, "Checkpoint.Inspect")) return native.inspect(name ?? "");
  }

  /// <summary>Reads all of one; name null: of the newest. JSON: "problems" is an empty list when every byte is as it was written.</summary>
  [OfC("st_checkpoint_verify")]
  public string Verify(string name = null) {
    using (Turn.Of(Safe, "Checkpoint.Verify")) return native.verify(name ?? "");
  }

  /// <summary>32 hex digits: of a trainer's checkpoint its <see cref="Trainer.Digest"/>; name null: of the newest.</summary>
  [OfC("st_checkpoint_hash")]
  public string Hash(string name = null) {
    using (Turn.Of(Safe, "Checkpoint.Hash")) return native.hash(name ?? "");
  }

  /// <summary>Writes one (name null: the newest that is whole) anew into a folder that is not there or empty: as <paramref name="shards"/> files of each kind,
  /// or with 0 as whole tensors.</summary>
  [OfC("st_checkpoint_reshard")]
  public void Reshard(string folder, int shards = 0, string name = null) { native.reshard(Given(folder, "folder"), shards, name ?? ""); }

  /// <summary>Writes the weights of one (name null: the newest that is whole) as one safetensors file; everything: the optimizer's state too.</summary>
  [OfC("st_checkpoint_export")]
  public void Export(string path, bool everything = false, string name = null) { native.export_to(Given(path, "path"), everything, name ?? ""); }

  /// <summary>Until no save is under way. Throws the error of one that nobody was told of yet, once.</summary>
  [OfC("st_checkpoint_wait")]
  public void Wait() { native.wait(); }

  /// <summary>Waits at most so long; false: one still is. <see cref="Timeout.InfiniteTimeSpan"/>: as long as it takes.</summary>
  public bool Wait(TimeSpan most) {
    if (most != Timeout.InfiniteTimeSpan && most < TimeSpan.FromDays(10000)) return native.wait_for((long)Math.Max(0, most.TotalMilliseconds));
    Wait();
    return true;
  }

  /// <summary>How far the saves are.</summary>
  [OfC("st_checkpoint_progress")]
  public SaveProgress Progress { get { return SaveProgress.Of(native.progress()); } }
}

}
