using System.Collections.Generic;

namespace ScaleTrain {

/// <summary>The result of loading a checkpoint.</summary>
public sealed class LoadReport {
  /// <summary>The step of the checkpoint.</summary>
  public long Step { get; }
  /// <summary>The name of the checkpoint, for example "step-00000120".</summary>
  public string Name { get; }
  /// <summary>The metadata it was saved with, as strings.</summary>
  public IReadOnlyDictionary<string, string> Metadata { get; }
  /// <summary>Number of tensors read.</summary>
  public long Read { get; }
  /// <summary>Tensors that were requested but are not in the checkpoint.</summary>
  public IReadOnlyList<string> Missing { get; }
  /// <summary>Tensors that are in the checkpoint but were not requested.</summary>
  public IReadOnlyList<string> Unexpected { get; }
  /// <summary>Newer checkpoints that were skipped because they are not valid, with the reason.</summary>
  public IReadOnlyList<string> Skipped { get; }
  /// <summary>For a trainer: recipe keys that differ from the checkpoint's, with both values, and an optimizer that starts afresh.</summary>
  public IReadOnlyList<string> Changed { get; }

  internal LoadReport(Record record) {
    Step = record.Integer();
    Name = record.Text();
    Metadata = Json.Texts(record.Text());
    Read = record.Integer();
    Missing = record.Texts();
    Unexpected = record.Texts();
    Skipped = record.Texts();
    Changed = record.Texts();
  }
}

/// <summary>Progress of the saves of a <see cref="Checkpoint"/>.</summary>
public struct SaveProgress {
  /// <summary>Bytes written of the running save.</summary>
  public long BytesDone { get; private set; }
  /// <summary>Total bytes of the running save; 0 if none is running.</summary>
  public long BytesAll { get; private set; }
  /// <summary>Saves in the queue.</summary>
  public long Waiting { get; private set; }
  /// <summary>Saves that succeeded since the Checkpoint was created.</summary>
  public long Saved { get; private set; }
  /// <summary>Saves that failed since the Checkpoint was created.</summary>
  public long Failed { get; private set; }
  /// <summary>Step of the newest checkpoint on the disk; -1 if there is none.</summary>
  public long SavedStep { get; private set; }
  /// <summary>Time for which the last save blocked its caller.</summary>
  public double BlockedSeconds { get; private set; }
  /// <summary>Time that writing the last save took.</summary>
  public double WriteSeconds { get; private set; }

  internal static SaveProgress Of(Record record) {
    return new SaveProgress {
      BytesDone = record.Integer(), BytesAll = record.Integer(), Waiting = record.Integer(), Saved = record.Integer(),
      Failed = record.Integer(), SavedStep = record.Integer(), BlockedSeconds = record.Real(), WriteSeconds = record.Real()
    };
  }
}

}
