using System;
using System.Collections.Generic;
using System.IO;
using System.Text;

namespace ScaleTrain {

/// <summary>What a call told, in the order it was written (native/record.hpp). Read it before this thread's next call.</summary>
internal unsafe struct Record {
  private readonly byte* first;
  private byte* at;

  internal Record(IntPtr bytes) { first = at = (byte*)bytes; }

  internal bool IsNone { get { return first == null; } }

  internal long Integer() {
    long value = *(long*)at;
    at += sizeof(long);
    return value;
  }

  internal double Real() {
    double value = *(double*)at;
    at += sizeof(double);
    return value;
  }

  internal bool Flag() { return Integer() != 0; }

  internal string Text() {
    int size = (int)Integer();
    string text = size == 0 ? "" : Encoding.UTF8.GetString(at, size);
    at += (size + 7) / 8 * 8;
    return text;
  }

  /// <summary>An empty text is none.</summary>
  internal string TextOrNull() {
    string text = Text();
    return text.Length == 0 ? null : text;
  }

  internal long[] Integers() {
    var all = new long[Integer()];
    for (int i = 0; i < all.Length; ++i) all[i] = Integer();
    return all;
  }

  internal string[] Texts() {
    var all = new string[Integer()];
    for (int i = 0; i < all.Length; ++i) all[i] = Text();
    return all;
  }
}

/// <summary>The same the other way: lists for a call's arguments.</summary>
internal sealed class Writing {
  private readonly MemoryStream bytes = new MemoryStream();

  internal Writing Add(long value) {
    bytes.Write(BitConverter.GetBytes(value), 0, sizeof(long));
    return this;
  }

  internal Writing Add(double value) { return Add(BitConverter.DoubleToInt64Bits(value)); }

  internal Writing Add(string text) {
    byte[] utf8 = Utf8.Bytes(text);
    Add(utf8.Length);
    bytes.Write(utf8, 0, utf8.Length);
    for (int i = utf8.Length; i % 8 != 0; ++i) bytes.WriteByte(0);
    return this;
  }

  internal Writing Add(IEnumerable<long> list) { return AddAll(list, value => Add(value)); }

  /// <summary>How many, and each. Counted here: a list may have changed since it said how many it has.</summary>
  internal Writing AddAll<T>(IEnumerable<T> list, Action<T> add) {
    long start = bytes.Position, count = 0;
    Add(count);
    foreach (T one in list) {
      add(one);
      ++count;
    }
    long end = bytes.Position;
    bytes.Position = start;
    Add(count);
    bytes.Position = end;
    return this;
  }

  internal byte[] Done() { return bytes.ToArray(); }

  internal static byte[] Of(IReadOnlyCollection<long> list) {
    if (list == null) throw new InvalidArgumentException("dims is null");
    return new Writing().Add(list).Done();
  }

  internal static byte[] Of(IReadOnlyCollection<string> list) {
    var all = new Writing();
    return all.AddAll(list, text => all.Add(text)).Done();
  }
}

/// <summary>Texts as the library has them. One that would arrive as another text is refused.</summary>
internal static class Utf8 {
  private static readonly Encoding strict = new UTF8Encoding(false, true);

  /// <summary>With a zero behind it; null for null.</summary>
  internal static byte[] Of(string text) {
    if (text == null) return null;
    byte[] bytes = Bytes(text);
    Array.Resize(ref bytes, bytes.Length + 1);
    return bytes;
  }

  internal static byte[] Bytes(string text) {
    if (text == null) throw new InvalidArgumentException("a text is null");
    if (text.IndexOf('\0') >= 0) throw new InvalidArgumentException("a text holds the character 0, which would end it: " + text.Replace('\0', '?'));
    try {
      return strict.GetBytes(text);
    } catch (EncoderFallbackException half) {
      throw new InvalidArgumentException("a text holds half a surrogate pair at " + half.Index + ", which UTF-8 cannot say: " + Encoding.UTF8.GetString(Encoding.UTF8.GetBytes(text)));
    }
  }

  /// <summary>Of a text of C's.</summary>
  internal static unsafe string From(IntPtr text) {
    if (text == IntPtr.Zero) return "";
    byte* first = (byte*)text;
    int size = 0;
    while (first[size] != 0) ++size;
    return size == 0 ? "" : Encoding.UTF8.GetString(first, size);
  }
}

}
