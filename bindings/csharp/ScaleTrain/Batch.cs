using System.Collections;
using System.Collections.Generic;

namespace ScaleTrain {

/// <summary>Named arrays: a batch, a predictor's inputs and outputs, parameters. Create it once and reuse it, with new numbers in the same arrays:
/// a call then allocates nothing.</summary>
/// <example><code>
/// var batch = new Batch { { "x", x, 64, 1 }, { "y", y, 64, 1 } };  // float[] x, y of 64 elements
/// var same = new Batch { { "x", new float[64, 1] }, { "y", new float[64, 1] } };
/// </code></example>
public sealed class Batch : IEnumerable<KeyValuePair<string, View>> {
  private readonly object gate = new object();

  internal struct Entry {
    internal string Name;
    internal byte[] Utf8;
    internal View View;
  }

  /// <summary>Replaced as a whole by <see cref="Add(string, View)"/>, so that a call on another thread keeps using the old entries.</summary>
  internal volatile Entry[] Entries = new Entry[0];

  /// <summary>An empty batch, to be filled by <see cref="Add(string, View)"/>.</summary>
  public Batch() {}

  /// <summary>A batch of these named arrays.</summary>
  public Batch(IEnumerable<KeyValuePair<string, View>> arrays) {
    foreach (KeyValuePair<string, View> array in Handle.Given(arrays, "arrays")) Add(array.Key, array.Value);
  }

  /// <summary>Number of arrays.</summary>
  public int Count { get { return Entries.Length; } }

  /// <summary>The array with this name.</summary>
  public View this[string name] {
    get {
      foreach (Entry entry in Entries)
        if (entry.Name == name) return entry.View;
      throw new NotFoundException("no array is named \"" + name + "\"") { Tensor = name ?? "" };
    }
  }

  /// <summary>Adds an array with its own dims.</summary>
  public void Add(string name, View view) {
    var made = new Entry { Name = name, Utf8 = Utf8.Of(Handle.Given(name, "name")), View = Handle.Given(view, name) };
    lock (gate) {
      var more = new Entry[Entries.Length + 1];
      Entries.CopyTo(more, 0);
      more[more.Length - 1] = made;
      Entries = more;
    }
  }

  /// <summary>Adds an array with these dims.</summary>
  public void Add(string name, View view, params long[] dims) { Add(name, Handle.Given(view, name).Reshape(dims)); }

  /// <summary>Names and arrays, in order.</summary>
  public IEnumerator<KeyValuePair<string, View>> GetEnumerator() {
    foreach (Entry entry in Entries) yield return new KeyValuePair<string, View>(entry.Name, entry.View);
  }

  IEnumerator IEnumerable.GetEnumerator() { return GetEnumerator(); }
}

}
