package org.scaletrain;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Reads and writes JSON, the format of the library's options and plans: maps, lists, strings, numbers, booleans and null. */
public final class Json {
  private static final int DEEPEST = 256;  // same limit as the library

  private final String text;
  private int at;
  private int depth;

  private Json(String text) {
    this.text = text;
  }

  /** Writes a map with string keys, an {@code Iterable}, an array of numbers, a string, a number, a Boolean or null as JSON. */
  public static String text(Object value) {
    StringBuilder out = new StringBuilder();
    write(out, value, 0);
    return out.toString();
  }

  /** Reads JSON as {@code Map<String, Object>}, {@code List<Object>}, String, Long, Double, Boolean or null. */
  public static Object parse(String text) {
    Json json = new Json(Handle.given(text, "Json.parse"));
    Object value = json.value();
    json.space();
    if (json.at != text.length()) throw json.wrong("unexpected text after the value");
    return value;
  }

  /** "" if there are no options; the library then uses its defaults. */
  static String options(Map<String, ?> options) {
    return options == null || options.isEmpty() ? "" : text(options);
  }

  private static void write(StringBuilder out, Object value, int depth) {
    if (depth > DEEPEST) throw new InvalidArgument("Json: values must be nested at most " + DEEPEST + " levels deep; does one contain itself?");
    if (value == null || value instanceof Boolean || value instanceof Long || value instanceof Integer || value instanceof Short
        || value instanceof Byte) {
      out.append(value);
    } else if (value instanceof Number number) {
      out.append(number);  // NaN and Infinity too: the library's error then names the key
    } else if (value instanceof Map<?, ?> map) {
      char before = '{';
      for (Map.Entry<?, ?> entry : map.entrySet()) {
        out.append(before);
        quote(out, String.valueOf(entry.getKey()));
        write(out.append(':'), entry.getValue(), depth + 1);
        before = ',';
      }
      out.append(before == '{' ? "{}" : "}");
    } else if (value instanceof Iterable<?> list) {
      char before = '[';
      for (Object element : list) {
        write(out.append(before), element, depth + 1);
        before = ',';
      }
      out.append(before == '[' ? "[]" : "]");
    } else if (value.getClass().isArray()) {
      List<Object> list = new ArrayList<>();
      for (int i = 0; i < java.lang.reflect.Array.getLength(value); ++i) list.add(java.lang.reflect.Array.get(value, i));
      write(out, list, depth + 1);
    } else if (value instanceof Enum<?> word) {
      quote(out, word.name().toLowerCase(java.util.Locale.ROOT));
    } else {
      quote(out, value.toString());
    }
  }

  private static void quote(StringBuilder out, String text) {
    out.append('"');
    for (int i = 0; i < text.length(); ++i) {
      char c = text.charAt(i);
      if (c == '"' || c == '\\') {
        out.append('\\').append(c);
      } else if (c < ' ') {
        out.append(String.format("\\u%04x", (int) c));
      } else {
        out.append(c);
      }
    }
    out.append('"');
  }

  private Object value() {
    space();
    char c = peek();
    if (c == '{' || c == '[') {
      if (++depth > DEEPEST) throw wrong("values nested deeper than " + DEEPEST + " levels");
      Object value = c == '{' ? map() : list();
      --depth;
      return value;
    }
    if (c == '"') return string();
    if (c == 't') return word("true", true);
    if (c == 'f') return word("false", false);
    if (c == 'n') return word("null", null);
    return number();
  }

  private Map<String, Object> map() {
    Map<String, Object> map = new LinkedHashMap<>();
    ++at;
    for (space(); peek() != '}'; space()) {
      if (!map.isEmpty()) expect(',');
      space();
      String key = string();
      space();
      expect(':');
      map.put(key, value());
    }
    ++at;
    return map;
  }

  private List<Object> list() {
    List<Object> list = new ArrayList<>();
    ++at;
    for (space(); peek() != ']'; space()) {
      if (!list.isEmpty()) expect(',');
      list.add(value());
    }
    ++at;
    return list;
  }

  private String string() {
    expect('"');
    StringBuilder out = new StringBuilder();
    for (char c = peek(); c != '"'; c = peek()) {
      ++at;
      if (c != '\\') {
        out.append(c);
        continue;
      }
      char escaped = peek();
      ++at;
      switch (escaped) {
        case 'n' -> out.append('\n');
        case 't' -> out.append('\t');
        case 'r' -> out.append('\r');
        case 'b' -> out.append('\b');
        case 'f' -> out.append('\f');
        case 'u' -> {
          if (at + 4 > text.length()) throw wrong("incomplete escape sequence");
          try {
            out.append((char) Integer.parseInt(text.substring(at, at + 4), 16));
          } catch (NumberFormatException no) {
            throw wrong("invalid escape sequence");
          }
          at += 4;
        }
        default -> out.append(escaped);
      }
    }
    ++at;
    return out.toString();
  }

  private Object number() {
    int begin = at;
    while (at < text.length() && "+-.0123456789eE".indexOf(text.charAt(at)) >= 0) ++at;
    String digits = text.substring(begin, at);
    boolean isWhole = digits.matches("-?[0-9]+");
    try {
      if (isWhole) return Long.parseLong(digits);
      double value = Double.parseDouble(digits);
      if (Double.isFinite(value)) return value;
    } catch (NumberFormatException no) {
      if (!isWhole) throw wrong("invalid value");
    }
    throw wrong(digits + " does not fit in 64 bits");
  }

  private Object word(String word, Object value) {
    if (!text.startsWith(word, at)) throw wrong("invalid value");
    at += word.length();
    return value;
  }

  private void space() {
    while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) ++at;
  }

  private char peek() {
    if (at >= text.length()) throw wrong("unexpected end of the text");
    return text.charAt(at);
  }

  private void expect(char c) {
    if (peek() != c) throw wrong("expected '" + c + "', got '" + peek() + "'");
    ++at;
  }

  private InvalidArgument wrong(String what) {
    return new InvalidArgument("Json: character " + at + ": " + what);
  }
}
