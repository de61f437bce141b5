using System.Collections.Generic;
using System.Linq;

namespace ScaleTrain {

/// <summary>How tensors of a checkpoint are found by name.</summary>
public sealed class LoadOptions {
  /// <summary>Load what fits by name, and report the rest; false: all must fit.</summary>
  public bool Partial { get; set; }
  /// <summary>Names of the checkpoint to names of what is loaded; "*", once in each, stands for any text.</summary>
  public IReadOnlyDictionary<string, string> Rename { get; set; }
  /// <summary>Only what has a name that fits one of these patterns, "block.*.weight"; null or none: all.</summary>
  public IReadOnlyCollection<string> Names { get; set; }

  /// <summary>Of <see cref="Checkpoint.Load"/> alone: reads once, straight into the arrays, and twice as fast. After a
  /// <see cref="CheckpointException"/> they may then hold a mixture of what was there and what was read.</summary>
  public bool Overwrite { get; set; }

  /// <summary>As the library takes them.</summary>
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
