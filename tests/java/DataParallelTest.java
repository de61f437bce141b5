package org.scaletrain.tests;

import static org.junit.jupiter.api.Assertions.*;

import org.junit.jupiter.api.Test;
import org.scaletrain.*;

/** Gradients that ranks exchange while backward is running, from Java. */
class DataParallelTest {
  @Test
  void eachRankHasTheMeanOrSumOfAll() throws Exception {
    try (Context context = new Context()) {
      Nets.onEach(Communicator.local(context, 3), own -> {
        Array w = Nets.filled(5, own.rank()), v = Nets.filled(3, 0);
        try (var parallel = new DataParallel(own, Batch.of("w", w, "v", v))) {
          parallel.noSync(true);
          parallel.gradientReady(0);
          parallel.synchronize();
          assertEquals(own.rank(), w.floats().get(0));
          parallel.noSync(false);
          parallel.gradientReady(1);
          assertThrows(WrongState.class, parallel::synchronize);
          parallel.gradientReady(0);
          parallel.synchronize();
        }
        assertEquals(1, w.floats().get(4));
        try (var parallel = new DataParallel(own, Batch.of("w", w), ReduceOp.SUM, 4)) {
          parallel.gradientReady(0);
          parallel.synchronize();
        }
        assertEquals(3, w.floats().get(4));
        return null;
      });
    }
  }
}
