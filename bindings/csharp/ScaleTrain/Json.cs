using System;
using System.Collections;
using System.Collections.Generic;
using System.Globalization;
using System.Text;

namespace ScaleTrain {

/// <summary>Options and values of the library's, which it takes as JSON: null, bool, numbers, texts, lists, and maps of them.</summary>
internal static class Json {
  internal static string Of(object value) {
    var text = new StringBuilder();
    Write(text, value);
    return text.ToString();
  }

  /// <summary>An object of options; null: "", the defaults. What is JSON already stays as it is.</summary>
  internal static string OfOptions(object options) {
    if (options == null) return "";
    return options as string ?? Of(options);
  }

  private static void Write(StringBuilder to, object value) {
    if (value == null) to.Append("null");
    else if (value is bool) to.Append((bool)value ? "true" : "false");
    else if (value is string text) Quote(to, text);
    else if (value is double) to.Append(Number((double)value));
    else if (value is float) to.Append(Number((float)value));
    else if (value is Enum) Quote(to, value.ToString());
    else if (value is IDictionary map) WriteMap(to, map);
    else if (value is IEnumerable list) WriteList(to, list);
    else if (value is IFormattable number) to.Append(number.ToString(null, CultureInfo.InvariantCulture));
    else WriteMap(to, MembersOf(value));
  }

  private static string Number(double real) {
    if (double.IsNaN(real) || double.IsInfinity(real)) throw new InvalidArgumentException(real.ToString(CultureInfo.InvariantCulture) + " cannot be a value in JSON");
    return real.ToString("R", CultureInfo.InvariantCulture);
  }

  private static void WriteMap(StringBuilder to, IDictionary map) {
    string between = "{";
    foreach (DictionaryEntry entry in map) {
      to.Append(between);
      Quote(to, (string)entry.Key);
      to.Append(':');
      Write(to, entry.Value);
      between = ",";
    }
    to.Append(between == "{" ? "{}" : "}");
  }

  private static void WriteList(StringBuilder to, IEnumerable list) {
    string between = "[";
    foreach (object one in list) {
      to.Append(between);
      Write(to, one);
      between = ",";
    }
    to.Append(between == "[" ? "[]" : "]");
  }

  /// <summary>Of an anonymous object, new { layers = 2 }: its properties.</summary>
  private static Dictionary<string, object> MembersOf(object value) {
    var members = new Dictionary<string, object>();
    foreach (System.Reflection.PropertyInfo property in value.GetType().GetProperties()) members.Add(property.Name, property.GetValue(value, null));
    return members;
  }

  private static void Quote(StringBuilder to, string text) {
    to.Append('"');
    foreach (char c in text) {
      if (c == '"' || c == '\\') to.Append('\\').Append(c);
      else if (c < ' ') to.Append("\\u").Append(((int)c).ToString("x4", CultureInfo.InvariantCulture));
      else to.Append(c);
    }
    to.Append('"');
  }

  /// <summary>A number, a bool or a text that the library gave; lists and maps stay text.</summary>
  internal static object Scalar(string json) {
    if (json == "true") return true;
    if (json == "false") return false;
    if (json == "null") return null;
    if (json.Length > 1 && json[0] == '"') return Unquote(json);
    if (long.TryParse(json, NumberStyles.AllowLeadingSign, CultureInfo.InvariantCulture, out long integer)) return integer;
    if (double.TryParse(json, NumberStyles.Float, CultureInfo.InvariantCulture, out double real)) return real;
    return json;
  }

  private static string Unquote(string json) {
    var text = new StringBuilder();
    for (int i = 1; i < json.Length - 1; ++i) {
      if (json[i] != '\\') {
        text.Append(json[i]);
        continue;
      }
      char c = json[++i];
      if (c == 'u') {
        text.Append((char)int.Parse(json.Substring(i + 1, 4), NumberStyles.HexNumber, CultureInfo.InvariantCulture));
        i += 4;
      } else {
        int at = "bfnrt".IndexOf(c);
        text.Append(at < 0 ? c : "\b\f\n\r\t"[at]);
      }
    }
    return text.ToString();
  }
}

}
