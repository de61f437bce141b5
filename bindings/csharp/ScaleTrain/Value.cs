using System.Collections.Generic;

namespace ScaleTrain {

/// <summary>A value of a graph. <c>+ - * /</c> are ops on two values or a value and a number; <see cref="Ops"/> has all ops.</summary>
public sealed class Value {
  internal Value(Graph graph, int id) {
    Graph = graph;
    Id = id;
  }

  /// <summary>The graph that it belongs to.</summary>
  public Graph Graph { get; }
  /// <summary>Its number in the graph.</summary>
  public int Id { get; }
  /// <summary>Further results of its op.</summary>
  public IReadOnlyList<Value> More { get; internal set; } = new Value[0];
  /// <summary>The type of the elements.</summary>
  public DType DType { get { return Graph.Info(this).DType; } }
  /// <summary>The dims, outermost first. A negative first dimension -n means n times the batch size.</summary>
  public long[] Dims { get { return Graph.Info(this).Dims; } }

  /// <summary>Elementwise sum.</summary>
  public static Value operator +(Value a, Value b) { return Made("add", a, b); }
  /// <summary>Elementwise difference.</summary>
  public static Value operator -(Value a, Value b) { return Made("sub", a, b); }
  /// <summary>Elementwise product.</summary>
  public static Value operator *(Value a, Value b) { return Made("mul", a, b); }
  /// <summary>Elementwise quotient.</summary>
  public static Value operator /(Value a, Value b) { return Made("div", a, b); }
  /// <summary>Negates each element.</summary>
  public static Value operator -(Value a) { return Made("neg", a); }
  /// <summary>Adds a number to each element.</summary>
  public static Value operator +(Value a, double b) { return Affine(a, 1, b); }
  /// <summary>Adds a number to each element.</summary>
  public static Value operator +(double a, Value b) { return Affine(b, 1, a); }
  /// <summary>Subtracts a number from each element.</summary>
  public static Value operator -(Value a, double b) { return Affine(a, 1, -b); }
  /// <summary>Subtracts each element from a number.</summary>
  public static Value operator -(double a, Value b) { return Affine(b, -1, a); }
  /// <summary>Multiplies each element by a number.</summary>
  public static Value operator *(Value a, double b) { return Affine(a, b, 0); }
  /// <summary>Multiplies each element by a number.</summary>
  public static Value operator *(double a, Value b) { return Affine(b, a, 0); }
  /// <summary>Divides each element by a number.</summary>
  public static Value operator /(Value a, double b) { return Affine(a, 1 / b, 0); }

  /// <summary>A readable description.</summary>
  public override string ToString() { return "value " + Id; }

  private static Value Made(string op, Value a, Value b) { return Handle.Given(a, "a").Graph.Op(op, a, Handle.Given(b, "b")); }
  private static Value Made(string op, Value a) { return Handle.Given(a, "a").Graph.Op(op, a); }
  private static Value Affine(Value x, double scale, double shift) {
    return Handle.Given(x, "value").Graph.Op("affine", new[] { x }, new Dictionary<string, object> { { "scale", scale }, { "shift", shift } })[0];
  }
}

/// <summary>Writes attributes of ops for native/record.hpp.</summary>
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
      else throw new InvalidArgumentException("attribute " + attribute.Key + " must be a bool, int, long, float, double, string, long[] or DType");
    }).Done();
  }
}

/// <summary>Merges a layer's own arguments into its options.</summary>
internal static class LayerOptions {
  internal static string With(object options, object[] own) {
    var all = new Dictionary<string, object>();
    for (int i = 0; i < own.Length; i += 2) all[(string)own[i]] = own[i + 1];
    string mine = Json.Of(all), theirs = Json.OfOptions(options).Trim();
    if (theirs.Length == 0) return mine;
    if (theirs[0] != '{') throw new InvalidArgumentException("options must be a JSON object, a dictionary or an anonymous object, got " + theirs);
    string members = theirs.Substring(1).TrimStart();
    if (members == "}") return mine;
    return all.Count == 0 ? theirs : mine.Substring(0, mine.Length - 1) + "," + members;
  }
}

}
