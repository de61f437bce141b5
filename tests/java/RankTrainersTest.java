package org.scaletrain.tests;

import static org.junit.jupiter.api.Assertions.*;

import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.scaletrain.*;

/** Trainers that are ranks of a group, each on its own thread. */
class RankTrainersTest {
  private static final int MICRO_BATCHES = 4, ROWS = 2;  // rows of one micro-batch

  /** A rank's rows of Nets' batch: the ranks take micro-batches in turn. */
  private static Batch rowsOf(int rank, int size) {
    int count = ROWS * ((MICRO_BATCHES - rank + size - 1) / size);
    Array x = Array.allocate(DType.F32, count, 1), y = Array.allocate(DType.F32, count, 1);
    for (int i = 0; i < count; ++i) {
      float at = (ROWS * (i / ROWS * size + rank) + i % ROWS) / 4f;
      x.floats().put(i, at);
      y.floats().put(i, at * at);
    }
    return Batch.of("x", x, "y", y);
  }

  private static List<String> weights(int size, int zero) throws Exception {
    try (Context context = new Context(new ContextOptions().lateParameters())) {
      return Nets.onEach(Communicator.local(context, size), own -> {
        Recipe recipe = new Recipe().batch(ROWS).microBatches(MICRO_BATCHES).lr(0.01).warmup(0).zero(zero);
        try (Model model = Nets.mlp(context); Trainer trainer = new Trainer(model, recipe, null, own)) {
          for (int i = 0; i < 3; ++i) trainer.step(rowsOf(own.rank(), size));
          return model.digest();
        }
      });
    }
  }

  @ParameterizedTest
  @CsvSource({"2,0", "3,0", "2,3"})
  void leaveTheBitsOfOne(int size, int zero) throws Exception {
    assertEquals(Set.copyOf(weights(1, 0)), Set.copyOf(weights(size, zero)));
  }

  private static long heldInParameters(Context context) {
    return context.memory().roles().stream().filter(use -> use.role().equals("parameters")).mapToLong(use -> use.bytes()).sum();
  }

  @Test
  void lateParametersAreMadeWhereTheyAreAskedFor() {
    try (Context late = new Context(new ContextOptions().lateParameters()); Model model = Nets.mlp(late)) {
      assertEquals(0, heldInParameters(late));
      model.digest();
      assertTrue(heldInParameters(late) > 0);
    }
  }
}
