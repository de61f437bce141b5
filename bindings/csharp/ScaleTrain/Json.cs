using System;
using System.Collections;
using System.Collections.Generic;
using System.Globalization;
using System.Text;

namespace ScaleTrain {

/// <summary>Writes options and values as the JSON that the library takes: null, bool, numbers, strings, lists and maps.</summary>
internal static class Json {
  internal static string Of(object value) {
    var text = new StringBuilder();
    Write(text, value, 0);
    return text.ToString();
  }

  /// <summary>Options as JSON. null becomes "", which means the defaults. A string is taken as JSON text.</summary>
  internal static string OfOptions(object options) {
    if (options == null) return "";
    return options as string ?? Of(options);
  }

  private const int MostDeep = 100;

  private static void Write(StringBuilder to, object value, int depth) {
    if (depth > MostDeep) throw new InvalidArgumentException("options must be nested at most " + MostDeep + " lists and maps deep; does one contain itself?");
    if (value == null) to.Append("null");
    else if (value is bool) to.Append((bool)value ? "true" : "false");
    else if (value is string text) Quote(to, text);
    else if (value is double) to.Append(Number((double)value));
    else if (value is float) to.Append(Number((float)value));
    else if (value is Enum || value is char) Quote(to, value.ToString());
    else if (IsNumber(value)) to.Append(((IFormattable)value).ToString(null, CultureInfo.InvariantCulture));
    else if (value is IFormattable) throw new InvalidArgumentException("an option must be a bool, a number, a string, a list or a map, got " + value + " of type " + value.GetType().Name);
    else if (value is IDictionary map) WriteMap(to, Pairs(map), depth);
    else if (value is IEnumerable<KeyValuePair<string, object>> pairs) WriteMap(to, pairs, depth);
    else if (value is IEnumerable list) WriteList(to, list, depth);
    else WriteMap(to, MembersOf(value), depth);
  }

  private static string Number(double real) {
    return real.ToString("R", CultureInfo.InvariantCulture);
  }

  private static bool IsNumber(object value) {
    TypeCode code = Type.GetTypeCode(value.GetType());
    return code >= TypeCode.SByte && code <= TypeCode.Decimal;
  }

  private static IEnumerable<KeyValuePair<string, object>> Pairs(IDictionary map) {
    foreach (DictionaryEntry entry in map)
      yield return new KeyValuePair<string, object>(entry.Key as string ?? throw new InvalidArgumentException("the keys of options must be strings, got " + entry.Key), entry.Value);
  }

  private static void WriteMap(StringBuilder to, IEnumerable<KeyValuePair<string, object>> map, int depth) {
    string between = "{";
    foreach (KeyValuePair<string, object> entry in map) {
      to.Append(between);
      Quote(to, entry.Key);
      to.Append(':');
      Write(to, entry.Value, depth + 1);
      between = ",";
    }
    to.Append(between == "{" ? "{}" : "}");
  }

  private static void WriteList(StringBuilder to, IEnumerable list, int depth) {
    string between = "[";
    foreach (object one in list) {
      to.Append(between);
      Write(to, one, depth + 1);
      between = ",";
    }
    to.Append(between == "[" ? "[]" : "]");
  }

  /// <summary>The properties of an anonymous object, new { layers = 2 }.</summary>
  private static Dictionary<string, object> MembersOf(object value) {
    var members = new Dictionary<string, object>();
    foreach (System.Reflection.PropertyInfo property in value.GetType().GetProperties())
      if (property.GetIndexParameters().Length == 0) members.Add(property.Name, property.GetValue(value, null));
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

  /// <summary>Converts a number, a bool or a string of the library's JSON. Lists and maps stay JSON text.</summary>
  internal static object Scalar(string json) {
    if (json == "true") return true;
    if (json == "false") return false;
    if (json == "null") return null;
    if (json.Length > 1 && json[0] == '"') return Unquote(json);
    if (long.TryParse(json, NumberStyles.AllowLeadingSign, CultureInfo.InvariantCulture, out long integer)) return integer;
    if (double.TryParse(json, NumberStyles.Float, CultureInfo.InvariantCulture, out double real)) return real;
    return json;
  }

  /// <summary>Reads an object of strings that the library wrote, {"a":"b","c":"d"}; "" is an empty one.</summary>
  internal static Dictionary<string, string> Texts(string json) {
    var all = new Dictionary<string, string>();
    string key = null;
    for (int i = 0; i < json.Length; ++i) {
      if (json[i] != '"') continue;
      int begin = i;
      for (++i; json[i] != '"'; ++i) if (json[i] == '\\') ++i;
      string text = Unquote(json.Substring(begin, i + 1 - begin));
      if (key == null) {
        key = text;
      } else {
        all[key] = text;
        key = null;
      }
    }
    return all;
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
