package org.scaletrain;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import org.scaletrain.internal.Attributes;

/** A model as ops over values. {@link Ops} has each op as a method. The call that is wrong throws. */
public final class Graph extends Handle {
  /** An input's first dimension, bound by each call's data; {@code n * BATCH} is n times the batch. */
  public static final long BATCH = -1;

  /** For an optional input of an op: none. */
  private static final int NONE = Integer.MIN_VALUE;

  final org.scaletrain.internal.Graph raw;

  /** An empty one. */
  @OfC("st_graph_create")
  public Graph(Context context) {
    raw = new org.scaletrain.internal.Graph(given(context, "Graph").raw);
    raw.keeps = context.raw;
  }

  /** What each batch gives by this name, in f32; dims {@code BATCH, ...}. */
  public Value input(String name, long... dims) {
    return input(name, DType.F32, dims);
  }

  /** What each batch gives by this name. */
  @OfC("st_graph_input")
  public Value input(String name, DType dtype, long... dims) {
    return value(raw.input(name, given(dtype, "Graph.input").number(), dims));
  }

  /** Trained; xavier of gain 1. */
  public Value parameter(String name, long... dims) {
    return parameter(name, Init.XAVIER, 1, dims);
  }

  /** Trained. scale: the standard deviation, half width or gain, as {@code init} says. */
  @OfC("st_graph_parameter")
  public Value parameter(String name, Init init, double scale, long... dims) {
    return value(raw.parameter(name, dims, given(init, "Graph.parameter").ordinal(), scale));
  }

  /** Begins as these values, copied; not trainable: no step changes it. */
  @OfC("st_graph_parameter_values")
  public Value parameter(String name, Array values, boolean trainable) {
    return value(raw.parameter_values(name, values, trainable));
  }

  /** Any op without attributes, also one of {@link Context#registerOp}. null: no input there, where it is optional. */
  public Value op(String name, Value... inputs) {
    return op(name, Arrays.asList(inputs), Map.of());
  }

  /** Any op. attributes: Booleans, numbers, texts, {@code long[]}, {@link DType}s. */
  public Value op(String name, List<Value> inputs, Map<String, ?> attributes) {
    return op(name, inputs, attributes, 1);
  }

  /** The first of so many results; the others are its {@link Value#more}. */
  @OfC({"st_graph_op", "st_graph_apply"})
  public Value op(String name, List<Value> inputs, Map<String, ?> attributes, int results) {
    int count = inputs.size();
    while (count > 0 && inputs.get(count - 1) == null) --count;
    int[] ids = new int[count];
    for (int i = 0; i < count; ++i) ids[i] = inputs.get(i) == null ? NONE : id(inputs.get(i));
    int[] made = raw.make(name, ids, attributes(name, attributes), results);
    List<Value> more = new ArrayList<>();
    for (int i = 1; i < made.length; ++i) more.add(value(made[i]));
    return new Value(this, made[0], List.copyOf(more));
  }

  /** y = x weight + bias. */
  public Value linear(String name, Value x, long outputs) {
    return linear(name, x, outputs, Map.of());
  }

  /** options: {@code bias} true, {@code init} "xavier", {@code scale} 1. */
  @OfC("st_layer_linear")
  public Value linear(String name, Value x, long outputs, Map<String, ?> options) {
    return value(raw.linear(name, id(x), Json.text(with(options, "outputs", outputs))));
  }

  /** A row of the table for each token; options: {@code scale} 0.02. */
  @OfC("st_layer_embedding")
  public Value embedding(String name, Value tokens, long vocabulary, long width, Map<String, ?> options) {
    return value(raw.embedding(name, id(tokens), Json.text(with(with(options, "width", width), "vocabulary", vocabulary))));
  }

  /** A row of the table for each token. */
  public Value embedding(String name, Value tokens, long vocabulary, long width) {
    return embedding(name, tokens, vocabulary, width, Map.of());
  }

  /** Over the last dimension; options: {@code kind} "layer" or "rms", {@code epsilon} 1e-5. */
  @OfC("st_layer_norm")
  public Value norm(String name, Value x, Map<String, ?> options) {
    return value(raw.norm(name, id(x), Json.options(options)));
  }

  /** Layer norm over the last dimension. */
  public Value norm(String name, Value x) {
    return norm(name, x, Map.of());
  }

  /** Self-attention; options: {@code groups} heads, {@code causal} true, {@code rope} false, {@code bias} true. */
  @OfC("st_layer_attention")
  public Value attention(String name, Value x, int heads, Map<String, ?> options) {
    return value(raw.attention(name, id(x), Json.text(with(options, "heads", heads))));
  }

  /** Causal self-attention. */
  public Value attention(String name, Value x, int heads) {
    return attention(name, x, heads, Map.of());
  }

  /** Hidden layers and one of outputs; options: {@code activation} "gelu", "relu", "silu" or "tanh". */
  @OfC("st_layer_mlp")
  public Value mlp(String name, Value x, long[] hidden, long outputs, Map<String, ?> options) {
    return value(raw.mlp(name, id(x), Json.text(with(with(options, "outputs", outputs), "hidden", hidden))));
  }

  /** Hidden layers with gelu and one of outputs. */
  public Value mlp(String name, Value x, long[] hidden, long outputs) {
    return mlp(name, x, hidden, outputs, Map.of());
  }

  /** rate 0: the recipe's. */
  @OfC("st_layer_dropout")
  public Value dropout(String name, Value x, double rate) {
    return value(raw.dropout(name, id(x), Json.text(Map.of("rate", rate))));
  }

  /** Names what is made until the result is closed {@code name.*}. */
  @OfC({"st_graph_scope", "st_graph_scope_end"})
  public Scope scope(String name) {
    raw.begin_scope(name);
    return new Scope(this);
  }

  /** Names what {@code body} makes {@code name.*}; gives what it gives. */
  public <T> T scope(String name, Supplier<T> body) {
    raw.begin_scope(name);
    try {
      return body.get();
    } finally {
      raw.end_scope();
    }
  }

  /** What predictors and {@link Trainer#forward} give by this name. */
  @OfC("st_graph_output")
  public void output(String name, Value value) {
    raw.output(name, id(value));
  }

  /**
   * The loss that training minimises: losses and means over the batch, also scaled, added and subtracted. A step has the formula's mean over its
   * rows, however they are cut into micro-batches; another function of them is an {@link InvalidArgument}.
   */
  @OfC("st_graph_loss")
  public void loss(Value value) {
    raw.loss(id(value));
  }

  /** Of a value: dtype and dims. */
  @OfC("st_graph_value")
  public ArrayType type(Value value) {
    return (ArrayType) raw.info(id(value));
  }

  /** The graph, a node a line. */
  @OfC("st_graph_text")
  public String text() {
    return raw.text();
  }

  @Override
  @OfC("st_graph_destroy")
  public void close() {
    raw.close();
  }

  void endScope() {
    raw.end_scope();
  }

  /** The graph that an op of these works on. */
  static Graph of(List<Value> values) {
    for (Value value : values) if (value != null) return value.graph();
    throw new InvalidArgument("an op needs a value to know its graph, and there is none");
  }

  private Value value(int id) {
    return new Value(this, id, List.of());
  }

  private int id(Value value) {
    if (given(value, "Graph: a value").graph() != this)
      throw new InvalidArgument("Graph: value " + value.id + " is of another graph");
    return value.id;
  }

  private static Map<String, Object> with(Map<String, ?> options, String key, Object value) {
    Map<String, Object> all = new LinkedHashMap<>();
    all.put(key, value);
    all.putAll(options);
    return all;
  }

  private static Attributes attributes(String op, Map<String, ?> from) {
    Attributes all = new Attributes();
    from.forEach((name, value) -> {
      if (value instanceof Boolean yes) {
        all.add_yes(name, yes);
      } else if (value instanceof Double || value instanceof Float) {
        all.add_real(name, ((Number) value).doubleValue());
      } else if (value instanceof Long || value instanceof Integer || value instanceof Short || value instanceof Byte) {
        all.add_integer(name, ((Number) value).longValue());
      } else if (value instanceof DType dtype) {
        all.add_integer(name, dtype.number());
      } else if (value instanceof long[] integers) {
        all.add_integers(name, integers);
      } else if (value instanceof String word) {
        all.add_word(name, word);
      } else {
        throw new InvalidArgument("Graph.op: " + op + "'s " + name + " is a Boolean, a number, a text, a long[] or a DType, not " + value);
      }
    });
    return all;
  }
}
