using System.Collections.Generic;

namespace ScaleTrain {

/// <summary>What was loaded from a checkpoint.</summary>
public sealed class LoadReport {
  /// <summary>Of the checkpoint.</summary>
  public long Step { get; }
  /// <summary>"step-00000120"</summary>
  public string Name { get; }
  /// <summary>What it was saved with, all as texts.</summary>
  public IReadOnlyDictionary<string, string> Metadata { get; }
  /// <summary>Tensors.</summary>
  public long Read { get; }
  /// <summary>Asked for, not in the checkpoint.</summary>
  public IReadOnlyList<string> Missing { get; }
  /// <summary>The other way round.</summary>
  public IReadOnlyList<string> Unexpected { get; }
  /// <summary>Newer checkpoints that were passed over since they are not whole, and why.</summary>
  public IReadOnlyList<string> Skipped { get; }
  /// <summary>Of a trainer: keys of its recipe that differ from the checkpoint's, with both values.</summary>
  public IReadOnlyList<string> Changed { get; }

  internal LoadReport(Record told) {
    Step = told.Integer();
    Name = told.Text();
    Metadata = Json.Texts(told.Text());
    Read = told.Integer();
    Missing = told.Texts();
    Unexpected = told.Texts();
    Skipped = told.Texts();
    Changed = told.Texts();
  }
}

/// <summary>How far the saves of a <see cref="Checkpoint"/> are.</summary>
public struct SaveProgress {
  /// <summary>Of the save that is being written.</summary>
  public long BytesDone { get; private set; }
  /// <summary>0: none is.</summary>
  public long BytesAll { get; private set; }
  /// <summary>Saves behind it.</summary>
  public long Waiting { get; private set; }
  /// <summary>Since the checkpoint was made.</summary>
  public long Saved { get; private set; }
  /// <summary>Likewise.</summary>
  public long Failed { get; private set; }
  /// <summary>Of the newest that is on the disk; -1: none.</summary>
  public long SavedStep { get; private set; }
  /// <summary>That the last save kept its caller.</summary>
  public double BlockedSeconds { get; private set; }
  /// <summary>That the last one took to be written.</summary>
  public double WriteSeconds { get; private set; }

  internal static SaveProgress Of(Record told) {
    return new SaveProgress {
      BytesDone = told.Integer(), BytesAll = told.Integer(), Waiting = told.Integer(), Saved = told.Integer(), Failed = told.Integer(),
      SavedStep = told.Integer(), BlockedSeconds = told.Real(), WriteSeconds = told.Real()
    };
  }
}

}
