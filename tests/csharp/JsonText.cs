using System;
using System.Collections.Generic;
using System.Globalization;
using System.Text;

/// <summary>JSON as dictionaries, lists, texts, doubles and bools: neither Debian's Mono nor .NET 8 has a reader that the other has too.</summary>
sealed class JsonText {
  private readonly string text;
  private int at;

  private JsonText(string text) { this.text = text; }

  internal static object Read(string text) {
    var reading = new JsonText(text);
    object value = reading.Value();
    if (reading.Next() != '\0') throw new FormatException("JSON goes on at " + reading.at);
    return value;
  }

  private object Value() {
    switch (Next()) {
      case '{': return Map();
      case '[': return List();
      case '"': return Text();
      case 't': return Word("true", true);
      case 'f': return Word("false", false);
      case 'n': return Word("null", null);
      default: return Number();
    }
  }

  private Dictionary<string, object> Map() {
    var map = new Dictionary<string, object>();
    for (++at; Next() != '}'; Pass(',')) {
      string key = Text();
      if (Next() != ':') throw new FormatException("JSON has no colon at " + at);
      ++at;
      map.Add(key, Value());
    }
    ++at;
    return map;
  }

  private List<object> List() {
    var list = new List<object>();
    for (++at; Next() != ']'; Pass(',')) list.Add(Value());
    ++at;
    return list;
  }

  private string Text() {
    if (Next() != '"') throw new FormatException("JSON has no text at " + at);
    var found = new StringBuilder();
    for (++at; text[at] != '"'; ++at) {
      if (text[at] != '\\') found.Append(text[at]);
      else if (text[++at] == 'u') found.Append((char)ushort.Parse(text.Substring((at += 4) - 3, 4), NumberStyles.HexNumber));
      else found.Append(Escaped(text[at]));
    }
    ++at;
    return found.ToString();
  }

  private static char Escaped(char letter) {
    int which = "bfnrt".IndexOf(letter);
    return which < 0 ? letter : "\b\f\n\r\t"[which];
  }

  private object Word(string word, object value) {
    if (string.CompareOrdinal(text, at, word, 0, word.Length) != 0) throw new FormatException("JSON has no value at " + at);
    at += word.Length;
    return value;
  }

  private object Number() {
    int begin = at;
    while (at < text.Length && "+-.0123456789eE".IndexOf(text[at]) >= 0) ++at;
    return double.Parse(text.Substring(begin, at - begin), CultureInfo.InvariantCulture);
  }

  private char Next() {
    while (at < text.Length && char.IsWhiteSpace(text[at])) ++at;
    return at < text.Length ? text[at] : '\0';
  }

  private void Pass(char between) {
    if (Next() == between) ++at;
  }
}
