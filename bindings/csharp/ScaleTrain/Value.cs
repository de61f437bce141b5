using System.Collections.Generic;

namespace ScaleTrain {

/// <summary>A value of a graph. <c>+ - * /</c> are ops, with a number too; <see cref="Ops"/> has all.</summary>
public sealed class Value {
  internal Value(Graph graph, int id) {
    Graph = graph;
    Id = id;
  }

  /// <summary>Where it belongs.</summary>
  public Graph Graph { get; }
  /// <summary>Its number there.</summary>
  public int Id { get; }
  /// <summary>Further results of the op that made it.</summary>
  public IReadOnlyList<Value> More { get; internal set; } = new Value[0];
  /// <summary>What its elements are.</summary>
  public DType DType { get { return Graph.Info(this).DType; } }
  /// <summary>Outermost first; a first one below 0 is that many times the batch.</summary>
  public long[] Dims { get { return Graph.Info(this).Dims; } }

  /// <summary>Element by element.</summary>
  public static Value operator +(Value a, Value b) { return Made("add", a, b); }
  /// <summary>Element by element.</summary>
  public static Value operator -(Value a, Value b) { return Made("sub", a, b); }
  /// <summary>Element by element.</summary>
  public static Value operator *(Value a, Value b) { return Made("mul", a, b); }
  /// <summary>Element by element.</summary>
  public static Value operator /(Value a, Value b) { return Made("div", a, b); }
  /// <summary>Of each element.</summary>
  public static Value operator -(Value a) { return Made("neg", a); }
  /// <summary>To each element.</summary>
  public static Value operator +(Value a, double b) { return Affine(a, 1, b); }
  /// <summary>To each element.</summary>
  public static Value operator +(double a, Value b) { return Affine(b, 1, a); }
  /// <summary>From each element.</summary>
  public static Value operator -(Value a, double b) { return Affine(a, 1, -b); }
  /// <summary>Each element from it.</summary>
  public static Value operator -(double a, Value b) { return Affine(b, -1, a); }
  /// <summary>Each element.</summary>
  public static Value operator *(Value a, double b) { return Affine(a, b, 0); }
  /// <summary>Each element.</summary>
  public static Value operator *(double a, Value b) { return Affine(b, a, 0); }
  /// <summary>Each element.</summary>
  public static Value operator /(Value a, double b) { return Affine(a, 1 / b, 0); }

  /// <summary>For people.</summary>
  public override string ToString() { return "value " + Id; }

  private static Value Made(string op, Value a, Value b) { return Handle.Given(a, "a").Graph.Op(op, a, Handle.Given(b, "b")); }
  private static Value Made(string op, Value a) { return Handle.Given(a, "a").Graph.Op(op, a); }
  private static Value Affine(Value x, double scale, double shift) {
    return Handle.Given(x, "value").Graph.Op("affine", new[] { x }, new Dictionary<string, object> { { "scale", scale }, { "shift", shift } })[0];
  }
}

/// <summary>Attributes of ops, as native/record.hpp reads them.</summary>
internal static class Attributes {
  private enum Kind { Bool = 1, Int = 2, Real = 3, Ints = 4, Word = 5 }  // ST_ATTRIBUTE_*

  internal static byte[] Of(IReadOnlyDictionary<string, object> attributes) {
    if (attributes == null) return null;
    var all = new Writing();
    return all.AddAll(attributes, attribute => {
      all.Add(attribute.Key);
      object value = attribute.Value;
      if (value is bool) all.Add((long)Kind.Bool).Add((bool)value ? 1 : 0);
      else if (value is int) all.Add((long)Kind.Int).Add((int)value);
      else if (value is long) all.Add((long)Kind.Int).Add((long)value);
      else if (value is DType) all.Add((long)Kind.Int).Add((long)(DType)value);
      else if (value is double) all.Add((long)Kind.Real).Add((double)value);
      else if (value is float) all.Add((long)Kind.Real).Add((double)(float)value);
      else if (value is string word) all.Add((long)Kind.Word).Add(word);
      else if (value is IReadOnlyCollection<long> list) all.Add((long)Kind.Ints).Add(list);
      else throw new InvalidArgumentException("attribute " + attribute.Key + " is none of bool, int, long, double, text, long[] and DType");
    }).Done();
  }
}

/// <summary>A layer's own arguments among its options.</summary>
internal static class LayerOptions {
  internal static string With(object options, object[] own) {
    var all = new Dictionary<string, object>();
    for (int i = 0; i < own.Length; i += 2) all[(string)own[i]] = own[i + 1];
    string mine = Json.Of(all), theirs = Json.OfOptions(options).Trim();
    if (theirs.Length == 0) return mine;
    if (theirs[0] != '{') throw new InvalidArgumentException("options are an object of JSON, a dictionary or an anonymous object, not " + theirs);
    string members = theirs.Substring(1).TrimStart();
    if (members == "}") return mine;
    return all.Count == 0 ? theirs : mine.Substring(0, mine.Length - 1) + "," + members;
  }
}

}
