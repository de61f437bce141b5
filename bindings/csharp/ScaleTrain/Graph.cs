using System;
using System.Collections.Generic;

namespace ScaleTrain {

/// <summary>The initial values of a parameter.</summary>
public enum Init {
  /// <summary>All 0.</summary>
  Zeros = 0,
  /// <summary>All 1.</summary>
  Ones = 1,
  /// <summary>Normal; scale is the standard deviation.</summary>
  Normal = 2,
  /// <summary>Uniform between -scale and scale.</summary>
  Uniform = 3,
  /// <summary>Glorot and Bengio 2010; scale is the gain.</summary>
  Xavier = 4,
  /// <summary>He et al. 2015; scale is the gain.</summary>
  Kaiming = 5
}

/// <summary>A model as ops over values. An invalid call throws at once.</summary>
public sealed class Graph : Handle {
  /// <summary>The first dimension of an input, set by the data of each call. n * Batch means n times the batch size.</summary>
  public const long Batch = -1;

  internal readonly Native.Graph native;
  internal override NativeHandle Safe { get { return native.handle; } }

  /// <summary>An empty graph.</summary>
  [OfC("st_graph_create")]
  public Graph(Context context) {
    native = new Native.Graph(Given(context, "context").native);
    Safe.KeepWhat(context.Safe);
  }

  /// <summary>An input that each batch supplies by this name; dims begin with <see cref="Batch"/>.</summary>
  [OfC("st_graph_input")]
  public Value Input(string name, DType dtype, params long[] dims) { return new Value(this, native.input(Given(name, "name"), (int)dtype, Writing.Of(dims))); }

  /// <summary>A trainable parameter. scale is the standard deviation, half width or gain, depending on init.</summary>
  [OfC("st_graph_parameter")]
  public Value Parameter(string name, long[] dims, Init init = Init.Xavier, double scale = 1) {
    return new Value(this, native.parameter(Given(name, "name"), Writing.Of(dims), (int)init, scale));
  }

  /// <summary>A parameter that starts with a copy of these values. If it is not trainable, no step changes it.</summary>
  [OfC("st_graph_parameter_values")]
  public Value Parameter(string name, View values, bool trainable = true) {
    using (Pins pins = Pins.Borrow(values, "values")) return new Value(this, native.parameter_values(Given(name, "name"), pins.First, trainable));
  }

  /// <summary>Any op without attributes, including those of <see cref="Context.RegisterOp"/>. <see cref="Ops"/> has a method for each op.</summary>
  public Value Op(string name, params Value[] inputs) { return Op(name, inputs, null, 1)[0]; }

  /// <summary>Any op with attributes. Returns its first <paramref name="results"/> results. null omits an optional input. An attribute is a bool, an
  /// int or long, a double, a string or a long[].</summary>
  [OfC("st_graph_apply", "st_graph_op")]
  public Value[] Op(string name, IReadOnlyList<Value> inputs, IReadOnlyDictionary<string, object> attributes, int results = 1) {
    var ids = new List<long>();
    foreach (Value input in Given(inputs, "inputs")) ids.Add(input == null ? 0 : IdOf(input));
    while (ids.Count > 0 && ids[ids.Count - 1] == 0) ids.RemoveAt(ids.Count - 1);
    Record record = native.apply(Given(name, "name"), Writing.Of(ids), Attributes.Of(attributes), results);
    var made = new Value[record.Integer()];
    for (int i = 0; i < made.Length; ++i) made[i] = new Value(this, (int)record.Integer());
    if (made.Length > 1) made[0].More = new ArraySegment<Value>(made, 1, made.Length - 1);
    return made;
  }

  /// <summary>Used by <see cref="Ops"/>. attributes alternates names and values. A null graph means that of the first input.</summary>
  internal static Value[] Made(Graph graph, string op, IReadOnlyList<Value> inputs, int results, params object[] attributes) {
    if (graph == null) {
      if (Given(inputs, "inputs").Count == 0) throw new InvalidArgumentException(op + ": at least one input is needed, got none");
      graph = Given(inputs[0], "the first input of " + op).Graph;
    }
    var all = new Dictionary<string, object>();
    for (int i = 0; i < attributes.Length; i += 2) all.Add((string)attributes[i], attributes[i + 1]);
    return graph.Op(op, inputs, all, results);
  }

  /// <summary>y = x weight + bias. Options: bias, init, scale. Options of all layers are JSON text, a dictionary or an anonymous object.</summary>
  [OfC("st_layer_linear")]
  public Value Linear(string name, Value x, long outputs, object options = null) { return Layer(native.linear, name, x, options, "outputs", outputs); }

  /// <summary>Looks up a table row for each token. Option: scale.</summary>
  [OfC("st_layer_embedding")]
  public Value Embedding(string name, Value tokens, long vocabulary, long width, object options = null) {
    return Layer(native.embedding, name, tokens, options, "vocabulary", vocabulary, "width", width);
  }

  /// <summary>Normalisation over the last dimension. Options: kind ("layer" or "rms"), epsilon.</summary>
  [OfC("st_layer_norm")]
  public Value Norm(string name, Value x, object options = null) { return Layer(native.norm, name, x, options); }

  /// <summary>Self-attention. Options: groups, causal, rope, bias.</summary>
  [OfC("st_layer_attention")]
  public Value Attention(string name, Value x, long heads, object options = null) { return Layer(native.attention, name, x, options, "heads", heads); }

  /// <summary>Hidden layers and an output layer. Option: activation ("gelu", "relu", "silu" or "tanh").</summary>
  [OfC("st_layer_mlp")]
  public Value Mlp(string name, Value x, long[] hidden, long outputs, object options = null) {
    return Layer(native.mlp, name, x, options, "hidden", Given(hidden, "hidden"), "outputs", outputs);
  }

  /// <summary>Dropout. Rate 0 means the recipe's rate.</summary>
  [OfC("st_layer_dropout")]
  public Value Dropout(string name, Value x, double rate = 0) { return Layer(native.dropout, name, x, null, "rate", rate); }

  /// <summary>Prefixes names with "name." until the returned scope is disposed: <c>using (graph.Scope("encoder")) ...</c></summary>
  [OfC("st_graph_scope", "st_graph_scope_end")]
  public IDisposable Scope(string name) {
    native.begin_scope(Given(name, "name"));
    return new OpenScope(this);
  }

  /// <summary>Declares an output, which predictors and <see cref="Trainer.Forward"/> return by this name.</summary>
  [OfC("st_graph_output")]
  public void Output(string name, Value value) { native.output(Given(name, "name"), IdOf(value)); }

  /// <summary>Sets the loss that training minimises. It may be a loss or a mean over the batch, or a sum, difference or multiple of these. A step
  /// uses the mean of this formula over its rows, whatever the micro-batch size. Any other function throws
  /// <see cref="InvalidArgumentException"/>.</summary>
  [OfC("st_graph_loss")]
  public void Loss(Value value) { native.loss(IdOf(value)); }

  /// <summary>Dtype and dims of a value.</summary>
  [OfC("st_graph_value")]
  public ValueInfo Info(Value value) { return new ValueInfo(native.info(IdOf(value))); }

  /// <summary>The graph as text, one node per line.</summary>
  [OfC("st_graph_text")]
  public string Text() {
    lock (Safe) return native.text();
  }

  private int IdOf(Value value) {
    if (Given(value, "value").Graph != this) throw new InvalidArgumentException("the value belongs to another graph");
    return value.Id;
  }

  private Value Layer(Func<string, int, string, int> call, string name, Value x, object options, params object[] own) {
    return new Value(this, call(Given(name, "name"), IdOf(x), LayerOptions.With(options, own)));
  }

  private sealed class OpenScope : IDisposable {
    private Graph graph;

    internal OpenScope(Graph graph) { this.graph = graph; }

    public void Dispose() {
      Graph open = graph;
      graph = null;
      if (open != null && !open.IsDisposed) open.native.end_scope();
    }
  }
}

}
