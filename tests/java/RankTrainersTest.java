package org.scaletrain.tests;

import static org.junit.jupiter.api.Assertions.*;

import org.junit.jupiter.api.Test;
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

  @Test
  void shardedWeightsAndStateAreReadByCollectiveCalls() throws Exception {
    try (Context context = new Context()) {
      float[] first = new float[2];
      Nets.onEach(Communicator.local(context, 2), own -> {
        Recipe recipe = new Recipe().batch(ROWS).microBatches(MICRO_BATCHES).lr(0.01).warmup(0).zero(3).emaDecay(0.5);
        try (Model model = Nets.mlp(context); Trainer trainer = new Trainer(model, recipe, null, own)) {
          trainer.step(rowsOf(own.rank(), 2));
          WrongState refused = assertThrows(WrongState.class, model::digest);
          assertTrue(refused.getMessage().contains("Model.digestCollective"), refused.getMessage());
          assertTrue(refused.getMessage().contains("(zero 3)"), refused.getMessage());
          assertThrows(WrongState.class, model::copy);
          assertThrows(WrongState.class, () -> new Predictor(model));
          assertThrows(WrongState.class, trainer::digest);
          assertThrows(WrongState.class, () -> trainer.gradient("layer.0.weight"));
          assertThrows(WrongState.class, () -> trainer.average("layer.0.weight"));
          var bytes = new java.io.ByteArrayOutputStream();
          assertThrows(WrongState.class, () -> model.write(bytes));
          model.writeCollective(bytes);
          try (Model whole = model.copyCollective(); Model read = Nets.mlp(context)) {
            read.read(new java.io.ByteArrayInputStream(bytes.toByteArray()));
            assertEquals(model.digestCollective(), read.digest());
            assertEquals(whole.digest(), read.digest());
            assertEquals(whole.get("layer.0.weight").floats(), model.getCollective("layer.0.weight").floats());
          }
          assertEquals(trainer.digestCollective(), trainer.digest());
          first[own.rank()] = trainer.gradientCollective("layer.0.weight").floats().get(0);
          assertEquals(model.getCollective("layer.0.weight").floats().capacity(),
              trainer.averageCollective("layer.0.weight").floats().capacity());
          try (Predictor predictor = Predictor.collective(model, new PredictorOptions())) {
            predictor.refresh();
          }
          return "";
        }
      });
      assertEquals(first[0], first[1]);
    }
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
