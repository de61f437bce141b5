using System;
using System.Collections.Generic;

namespace ScaleTrain {

/// <summary>What a parameter begins as.</summary>
public enum Init {
  /// <summary>0</summary>
  Zeros = 0,
  /// <summary>1</summary>
  Ones = 1,
  /// <summary>Normal; scale is the standard deviation.</summary>
  Normal = 2,
  /// <summary>Uniform; scale is half the width.</summary>
  Uniform = 3,
  /// <summary>Glorot and Bengio's; scale is the gain.</summary>
  Xavier = 4,
  /// <summary>He's; scale is the gain.</summary>
  Kaiming = 5
}

/// <summary>A model as ops over values. The call that is wrong throws.</summary>
public sealed class Graph : Handle {
  /// <summary>An input's first dimension, bound by each call's data; n * Batch is n times the batch.</summary>
  public const long Batch = -1;

  internal readonly Native.Graph native;
  internal override NativeHandle Safe { get { return native.handle; } }

  /// <summary>An empty one.</summary>
  [OfC("st_graph_create")]
  public Graph(Context context) {
    native = new Native.Graph(Given(context, "context").native);
    Safe.KeepWhat(context.Safe);
  }

  /// <summary>What each batch gives by this name; dims begin with <see cref="Batch"/>.</summary>
  [OfC("st_graph_input")]
  public Value Input(string name, DType dtype, params long[] dims) { return new Value(this, native.input(Given(name, "name"), (int)dtype, Writing.Of(dims))); }

  /// <summary>Trained. scale: standard deviation, half width or gain, as <see cref="Init"/> says.</summary>
  [OfC("st_graph_parameter")]
  public Value Parameter(string name, long[] dims, Init init = Init.Xavier, double scale = 1) {
    return new Value(this, native.parameter(Given(name, "name"), Writing.Of(dims), (int)init, scale));
  }

  /// <summary>Begins as these values, copied; not trainable: no step changes it.</summary>
  [OfC("st_graph_parameter_values")]
  public Value Parameter(string name, View values, bool trainable = true) {
    using (Pins pins = Pins.Borrow(values, "values")) return new Value(this, native.parameter_values(Given(name, "name"), pins.First, trainable));
  }

  /// <summary>Any op, also one of <see cref="Context.RegisterOp"/>. <see cref="Ops"/> has each as a method.</summary>
  public Value Op(string name, params Value[] inputs) { return Op(name, inputs, null, 1)[0]; }

  /// <summary>The same with attributes and its first <paramref name="results"/> results. A null input is one that is not given, where it is
  /// optional. An attribute is a bool, an int or long, a double, a text or a long[].</summary>
  [OfC("st_graph_apply", "st_graph_op")]
  public Value[] Op(string name, IReadOnlyList<Value> inputs, IReadOnlyDictionary<string, object> attributes, int results = 1) {
    var ids = new List<long>();
    foreach (Value input in Given(inputs, "inputs")) ids.Add(input == null ? 0 : IdOf(input));
    while (ids.Count > 0 && ids[ids.Count - 1] == 0) ids.RemoveAt(ids.Count - 1);
    Record told = native.apply(Given(name, "name"), Writing.Of(ids), Attributes.Of(attributes), results);
    var made = new Value[told.Integer()];
    for (int i = 0; i < made.Length; ++i) made[i] = new Value(this, (int)told.Integer());
    if (made.Length > 1) made[0].More = new ArraySegment<Value>(made, 1, made.Length - 1);
    return made;
  }

  /// <summary>For <see cref="Ops"/>: attributes are names, each with its value behind it. graph null: the first input's.</summary>
  internal static Value[] Made(Graph graph, string op, IReadOnlyList<Value> inputs, int results, params object[] attributes) {
    if (graph == null) {
      if (Given(inputs, "inputs").Count == 0) throw new InvalidArgumentException(op + ": a list of values is empty, so there is no graph to work on");
      graph = Given(inputs[0], "the first input of " + op).Graph;
    }
    var all = new Dictionary<string, object>();
    for (int i = 0; i < attributes.Length; i += 2) all.Add((string)attributes[i], attributes[i + 1]);
    return graph.Op(op, inputs, all, results);
  }

  /// <summary>y = x weight + bias. options: bias, init, scale; JSON text, a dictionary or an anonymous object, here and below.</summary>
  [OfC("st_layer_linear")]
  public Value Linear(string name, Value x, long outputs, object options = null) { return Layer(native.linear, name, x, options, "outputs", outputs); }

  /// <summary>A row of the table for each token. options: scale.</summary>
  [OfC("st_layer_embedding")]
  public Value Embedding(string name, Value tokens, long vocabulary, long width, object options = null) {
    return Layer(native.embedding, name, tokens, options, "vocabulary", vocabulary, "width", width);
  }

  /// <summary>Over the last dimension. options: kind ("layer" or "rms"), epsilon.</summary>
  [OfC("st_layer_norm")]
  public Value Norm(string name, Value x, object options = null) { return Layer(native.norm, name, x, options); }

  /// <summary>Self-attention. options: groups, causal, rope, bias.</summary>
  [OfC("st_layer_attention")]
  public Value Attention(string name, Value x, long heads, object options = null) { return Layer(native.attention, name, x, options, "heads", heads); }

  /// <summary>Hidden layers and one of outputs. options: activation ("gelu", "relu", "silu" or "tanh").</summary>
  [OfC("st_layer_mlp")]
  public Value Mlp(string name, Value x, long[] hidden, long outputs, object options = null) {
    return Layer(native.mlp, name, x, options, "hidden", Given(hidden, "hidden"), "outputs", outputs);
  }

  /// <summary>rate 0: the recipe's.</summary>
  [OfC("st_layer_dropout")]
  public Value Dropout(string name, Value x, double rate = 0) { return Layer(native.dropout, name, x, null, "rate", rate); }

  /// <summary>Names what follows "name." until it is disposed of: <c>using (graph.Scope("encoder")) ...</c></summary>
  [OfC("st_graph_scope", "st_graph_scope_end")]
  public IDisposable Scope(string name) {
    native.begin_scope(Given(name, "name"));
    return new OpenScope(this);
  }

  /// <summary>What predictors and <see cref="Trainer.Forward"/> give by this name.</summary>
  [OfC("st_graph_output")]
  public void Output(string name, Value value) { native.output(Given(name, "name"), IdOf(value)); }

  /// <summary>
  /// The loss that training minimises: losses and means over the batch, also scaled, added and subtracted. A step has the formula's mean over its
  /// rows, however they are cut into micro-batches; another function of them is an <see cref="InvalidArgumentException"/>.
  /// </summary>
  [OfC("st_graph_loss")]
  public void Loss(Value value) { native.loss(IdOf(value)); }

  /// <summary>Dtype and dims of a value.</summary>
  [OfC("st_graph_value")]
  public ValueInfo Info(Value value) { return new ValueInfo(native.info(IdOf(value))); }

  /// <summary>The graph, a node a line.</summary>
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
