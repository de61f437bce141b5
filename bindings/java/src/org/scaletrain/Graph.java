package org.scaletrain;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import org.scaletrain.internal.Attributes;

/** A model as ops over values. {@link Ops} has a method for each op. An invalid call throws at once. */
public final class Graph extends Handle {
  /** The first dimension of an input, set by the data of each call. {@code n * BATCH} means n times the batch size. */
  public static final long BATCH = -1;

  /** The id of an omitted optional input. */
  private static final int NONE = Integer.MIN_VALUE;

  final org.scaletrain.internal.Graph raw;

  /** An empty graph. */
  @OfC("st_graph_create")
  public Graph(Context context) {
    raw = new org.scaletrain.internal.Graph(given(context, "Graph").raw);
    raw.keeps = context.raw;
  }

  /** An f32 input that each batch supplies by this name; dims {@code BATCH, ...}. */
  public Value input(String name, long... dims) {
    return input(name, DType.F32, dims);
  }

  /** An input that each batch supplies by this name. */
  @OfC("st_graph_input")
  public Value input(String name, DType dtype, long... dims) {
    return value(raw.input(name, given(dtype, "Graph.input").number(), dims));
  }

  /** A trainable parameter with xavier initialisation of gain 1. */
  public Value parameter(String name, long... dims) {
    return parameter(name, Init.XAVIER, 1, dims);
  }

  /** A trainable parameter. {@code scale} is the standard deviation, half width or gain, depending on {@code init}. */
  @OfC("st_graph_parameter")
  public Value parameter(String name, Init init, double scale, long... dims) {
    return value(raw.parameter(name, dims, given(init, "Graph.parameter").ordinal(), scale));
  }

  /** A parameter that starts with a copy of these values. If it is not trainable, no step changes it. */
  @OfC("st_graph_parameter_values")
  public Value parameter(String name, Array values, boolean trainable) {
    return value(raw.parameter_values(name, values, trainable));
  }

  /** Any op without attributes, including those of {@link Context#registerOp}. null omits an optional input. */
  public Value op(String name, Value... inputs) {
    return op(name, Arrays.asList(inputs), Map.of());
  }

  /** Any op. Attribute values are Booleans, numbers, strings, {@code long[]} or {@link DType}. */
  public Value op(String name, List<Value> inputs, Map<String, ?> attributes) {
    return op(name, inputs, attributes, 1);
  }

  /** Any op with {@code results} results. Returns the first; the others are in its {@link Value#more}. */
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

  /** y = x weight + bias. Options with defaults: {@code bias} true, {@code init} "xavier", {@code scale} 1. */
  @OfC("st_layer_linear")
  public Value linear(String name, Value x, long outputs, Map<String, ?> options) {
    return value(raw.linear(name, id(x), Json.text(with(options, "outputs", outputs))));
  }

  /** Looks up a table row for each token. Option with default: {@code scale} 0.02. */
  @OfC("st_layer_embedding")
  public Value embedding(String name, Value tokens, long vocabulary, long width, Map<String, ?> options) {
    return value(raw.embedding(name, id(tokens), Json.text(with(with(options, "width", width), "vocabulary", vocabulary))));
  }

  /** Looks up a table row for each token. */
  public Value embedding(String name, Value tokens, long vocabulary, long width) {
    return embedding(name, tokens, vocabulary, width, Map.of());
  }

  /** Normalisation over the last dimension. Options: {@code kind} "layer" or "rms", {@code epsilon} 1e-5. */
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

  /** Hidden layers and an output layer. Option: {@code activation} "gelu", "relu", "silu" or "tanh". */
  @OfC("st_layer_mlp")
  public Value mlp(String name, Value x, long[] hidden, long outputs, Map<String, ?> options) {
    return value(raw.mlp(name, id(x), Json.text(with(with(options, "outputs", outputs), "hidden", hidden))));
  }

  /** Hidden layers with gelu and an output layer. */
  public Value mlp(String name, Value x, long[] hidden, long outputs) {
    return mlp(name, x, hidden, outputs, Map.of());
  }

  /** Dropout. Rate 0 means the recipe's rate. */
  @OfC("st_layer_dropout")
  public Value dropout(String name, Value x, double rate) {
    return value(raw.dropout(name, id(x), Json.text(Map.of("rate", rate))));
  }

  /** Prefixes names with {@code name.} until the returned scope is closed. */
  @OfC({"st_graph_scope", "st_graph_scope_end"})
  public Scope scope(String name) {
    raw.begin_scope(name);
    return new Scope(this);
  }

  /** Prefixes the names that {@code body} creates with {@code name.} and returns the result of {@code body}. */
  public <T> T scope(String name, Supplier<T> body) {
    raw.begin_scope(name);
    try {
      return body.get();
    } finally {
      raw.end_scope();
    }
  }

  /** Declares an output, which predictors and {@link Trainer#forward} return by this name. */
  @OfC("st_graph_output")
  public void output(String name, Value value) {
    raw.output(name, id(value));
  }

  /**
   * Sets the loss that training minimises. It may be a loss or a mean over the batch, or a sum, difference or multiple of these. A step uses
   * the mean of this formula over its rows, whatever the micro-batch size. Any other function throws {@link InvalidArgument}.
   */
  @OfC("st_graph_loss")
  public void loss(Value value) {
    raw.loss(id(value));
  }

  /** Dtype and dims of a value. */
  @OfC("st_graph_value")
  public ArrayType type(Value value) {
    return (ArrayType) raw.info(id(value));
  }

  /** The graph as text, one node per line. */
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

  /** The graph that these values belong to. */
  static Graph of(List<Value> values) {
    for (Value value : values) if (value != null) return value.graph();
    throw new InvalidArgument("Ops: at least one input must be a value of a graph, got none");
  }

  private Value value(int id) {
    return new Value(this, id, List.of());
  }

  private int id(Value value) {
    if (given(value, "Graph: a value").graph() != this)
      throw new InvalidArgument("Graph: value " + value.id + " belongs to another graph");
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
        throw new InvalidArgument(
            "Graph.op: attribute " + name + " of " + op + " must be a Boolean, a number, a String, a long[] or a DType, got " + value);
      }
    });
    return all;
  }
}
