package org.scaletrain.tests;

import static org.junit.jupiter.api.Assertions.*;

import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.scaletrain.*;

/** Graphs: ops as methods, one of each kind in ops.def: attributes of each type, lists, optional inputs, further results. */
class GraphTest {
  private final Context context = new Context();
  private final Graph graph = new Graph(context);

  @AfterEach
  void close() {
    graph.close();
    context.close();
  }

  @Test
  void aListOfResultsIsAList() {
    Value x = graph.input("x", Graph.BATCH, 6);
    List<Value> parts = Ops.split(x, -1, new long[] {2, 1, 3});
    assertEquals(List.of(ArrayType.f32(-1, 2), ArrayType.f32(-1, 1), ArrayType.f32(-1, 3)), parts.stream().map(Value::type).toList());
    assertEquals(ArrayType.f32(-1, 6), Ops.concat(parts, -1).type());
    assertThrows(InvalidArgument.class, () -> Ops.concat(List.of()));
  }

  @Test
  void furtherResultsAndOptionalInputsAreThere() {
    Value logits = graph.input("logits", Graph.BATCH, 5), targets = graph.input("targets", DType.I32, Graph.BATCH);
    Value weights = graph.input("weights", Graph.BATCH);
    assertEquals(2, Ops.crossEntropy(logits, targets).more().size());
    assertEquals(0, Ops.crossEntropy(logits, targets, weights).type().rank());
    assertEquals(0, Ops.crossEntropy(logits, targets, null, -100, 0.1, 1e-4).type().rank());
    assertThrows(InvalidArgument.class, () -> Ops.crossEntropy(logits, targets, logits));
    assertTrue(graph.text().contains("cross_entropy"));
  }

  @Test
  void attributesHaveTheirTypes() {
    Value x = graph.input("x", Graph.BATCH, 4);
    assertEquals(DType.I32, Ops.cast(x, DType.I32).type().dtype());
    assertEquals(new ArrayType(DType.F64, 2, 3), Ops.fill(graph, new long[] {2, 3}, 0.5, DType.F64).type());
    assertEquals(ArrayType.f32(-1, 2, 2), Ops.reshape(x, new long[] {-1, 2, 2}).type());
    assertEquals(ArrayType.f32(-1, 1), Ops.mean(x, new long[] {1}, true).type());
    assertEquals(ArrayType.f32(-1, 4), Ops.gelu(x, "erf").type());
    assertEquals(ArrayType.f32(-1, 4), Ops.clamp(x, Double.NEGATIVE_INFINITY, 6).type());
    assertEquals(DType.BOOL, Ops.compare(x, x, "less").type().dtype());
    assertEquals(ArrayType.f32(-1, 4), Ops.where(Ops.compare(x, x, "less"), x, x.neg()).type());
    assertThrows(InvalidArgument.class, () -> Ops.gelu(x, "no such word"));
    assertThrows(InvalidArgument.class, () -> graph.op("softmax", List.of(x), Map.of("axes", 1)));
  }

  @Test
  void valuesCalculate() {
    Value x = graph.input("x", Graph.BATCH, 4), w = graph.parameter("w", 4, 2);
    assertEquals(ArrayType.f32(-1, 2), x.add(1).sub(2).mul(3).div(4).matmul(w).type());
    assertEquals(ArrayType.f32(-1, 4), x.add(x).sub(x).mul(x).div(x).neg().type());
  }

  @Test
  void scopesNameWhatIsMadeInThem() {
    Value x = graph.input("x", Graph.BATCH, 4);
    Value first = graph.scope("outer", () -> {
      try (Scope inner = graph.scope("inner")) {
        Value made = graph.linear("first", x, 2, Map.of("bias", false));
        inner.hashCode();
        return made;
      }
    });
    assertThrows(IllegalStateException.class, () -> graph.scope("gone", () -> {
      throw new IllegalStateException();
    }));
    assertEquals(ArrayType.f32(-1, 2), first.type());
    graph.linear("second", x, 2);
    String text = graph.text();
    assertTrue(text.contains("outer.inner.first.weight"), text);
    assertTrue(text.contains("second.bias") && !text.contains("first.bias") && !text.contains("gone"), text);
  }
}
