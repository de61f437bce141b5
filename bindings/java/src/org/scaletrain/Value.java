package org.scaletrain;

import java.util.List;
import java.util.Map;

/** A value of a {@link Graph}: an input, a parameter or the result of an op. */
public final class Value {
  private final Graph graph;
  final int id;
  private final List<Value> more;

  Value(Graph graph, int id, List<Value> more) {
    this.graph = graph;
    this.id = id;
    this.more = more;
  }

  /** The graph that it belongs to. */
  public Graph graph() {
    return graph;
  }

  /** Further results of its op, for example the token count of a loss. */
  public List<Value> more() {
    return more;
  }

  /** Dtype and dims. A negative first dimension {@code -n} means n times the batch size. */
  public ArrayType type() {
    return graph.type(this);
  }

  /** this + other, broadcast. */
  public Value add(Value other) {
    return graph.op("add", this, other);
  }

  /** this + number. */
  public Value add(double number) {
    return affine(1, number);
  }

  /** this - other, broadcast. */
  public Value sub(Value other) {
    return graph.op("sub", this, other);
  }

  /** this - number. */
  public Value sub(double number) {
    return affine(1, -number);
  }

  /** this * other, element by element, broadcast. */
  public Value mul(Value other) {
    return graph.op("mul", this, other);
  }

  /** this * number. */
  public Value mul(double number) {
    return affine(number, 0);
  }

  /** this / other, element by element, broadcast. */
  public Value div(Value other) {
    return graph.op("div", this, other);
  }

  /** this / number. */
  public Value div(double number) {
    return affine(1 / number, 0);
  }

  /** The matrix product over the last two dimensions. */
  public Value matmul(Value other) {
    return graph.op("matmul", this, other);
  }

  /** -this. */
  public Value neg() {
    return graph.op("neg", this);
  }

  private Value affine(double scale, double shift) {
    return graph.op("affine", List.of(this), Map.of("scale", scale, "shift", shift));
  }

  @Override
  public String toString() {
    return "value " + id + " " + type();
  }
}
