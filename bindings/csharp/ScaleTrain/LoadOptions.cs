using System.Collections.Generic;
using System.Linq;

namespace ScaleTrain {

/// <summary>How the tensors of a checkpoint are matched by name.</summary>
public sealed class LoadOptions {
  /// <summary>Loads the tensors whose names match and reports the others. If false, all must match.</summary>
  public bool Partial { get; set; }
  /// <summary>Maps names in the checkpoint to names in the model or batch. "*", at most once in each, matches any text.</summary>
  public IReadOnlyDictionary<string, string> Rename { get; set; }
  /// <summary>Loads only tensors whose names match one of these patterns, such as "block.*.weight". Null or empty means all.</summary>
  public IReadOnlyCollection<string> Names { get; set; }

  /// <summary>Only for <see cref="Checkpoint.Load"/>: reads the files once, directly into the arrays, which is twice as fast. After a
  /// <see cref="CheckpointException"/> the arrays may hold a mixture of old and new values.</summary>
  public bool Overwrite { get; set; }

  /// <summary>The options in the form that the library takes.</summary>
  internal struct Raw {
    internal bool Partial, Overwrite;
    internal byte[] From, Into, Names;
  }

  internal static Raw Of(LoadOptions options) {
    LoadOptions wish = options ?? new LoadOptions();
    Raw raw = Of(wish.Partial, wish.Rename, wish.Names);
    raw.Overwrite = wish.Overwrite;
    return raw;
  }

  internal static Raw Of(bool partial, IReadOnlyDictionary<string, string> rename, IReadOnlyCollection<string> names) {
    KeyValuePair<string, string>[] pairs = rename == null ? new KeyValuePair<string, string>[0] : rename.ToArray();
    return new Raw {
      Partial = partial, From = Writing.Of(pairs.Select(pair => pair.Key).ToArray()),
      Into = Writing.Of(pairs.Select(pair => Handle.Given(pair.Value, "rename: the name for \"" + pair.Key + "\"")).ToArray()),
      Names = Writing.Of(names ?? new string[0])
    };
  }
}

}
