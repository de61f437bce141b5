using System;
using System.Collections.Generic;
using System.IO;
using System.Text;

namespace ScaleTrain {

/// <summary>The result of a call, read in the order in which native/record.hpp wrote it. Read it before this thread's next call.</summary>
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

  /// <summary>A string; null if it is empty.</summary>
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

/// <summary>The reverse direction: writes lists for the arguments of a call.</summary>
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

  /// <summary>Writes the count, then each item. Counts the items itself, since a list may change between its Count and its enumeration.</summary>
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

/// <summary>Converts strings to and from UTF-8. A string that UTF-8 or C cannot represent exactly is refused.</summary>
internal static class Utf8 {
  private static readonly Encoding strict = new UTF8Encoding(false, true);

  /// <summary>The bytes with a terminating zero; null for null.</summary>
  internal static byte[] Of(string text) {
    if (text == null) return null;
    byte[] bytes = Bytes(text);
    Array.Resize(ref bytes, bytes.Length + 1);
    return bytes;
  }

  internal static byte[] Bytes(string text) {
    if (text == null) throw new InvalidArgumentException("a string is null");
    if (text.IndexOf('\0') >= 0) throw new InvalidArgumentException("a string must not contain the character 0: " + text.Replace('\0', '?'));
    try {
      return strict.GetBytes(text);
    } catch (EncoderFallbackException half) {
      throw new InvalidArgumentException("a string must not contain an unpaired surrogate, got one at " + half.Index + ": " + Encoding.UTF8.GetString(Encoding.UTF8.GetBytes(text)));
    }
  }

  /// <summary>The text of a C string.</summary>
  internal static unsafe string From(IntPtr text) {
    if (text == IntPtr.Zero) return "";
    byte* first = (byte*)text;
    int size = 0;
    while (first[size] != 0) ++size;
    return size == 0 ? "" : Encoding.UTF8.GetString(first, size);
  }
}

}
