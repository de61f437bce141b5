package org.scaletrain.tests;

import static org.junit.jupiter.api.Assertions.*;

import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.scaletrain.*;

/** A sharded optimizer, from Java. */
class ShardedOptimizerTest {
  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void eachRankHasTheUpdateByTheMeanOfAll(int stage) throws Exception {
    Map<String, Object> settings = Map.of("optimizer", "sgd", "lr", 0.5);
    try (Context context = new Context()) {
      Nets.onEach(Communicator.local(context, 2), own -> {
        Array w = Nets.filled(2048, 1), half = Array.allocate(DType.BF16, 2048);
        try (var sharded = new ShardedOptimizer(own, Batch.of("w", w), settings, stage, ReduceOp.MEAN, 1 << 20, true)) {
          sharded.keepCopies(half);
          assertEquals(1, sharded.step(Nets.filled(2048, 2 * own.rank())).step());
          assertEquals((short) 0x3F00, half.shorts().get(0));
          assertEquals(1.5F, w.floats().get(0) + w.floats().get(2047));  // each rank has only its own shard of the master weights
          sharded.set("lr", 1);
          if (stage == 2) {
            sharded.gradientReady(0, Nets.filled(2048, 1));
            sharded.step();
          } else {
            assertThrows(WrongState.class, () -> sharded.gradientReady(0, w));
            sharded.step(Nets.filled(2048, 1));
          }
          sharded.gatherState(-1);
          assertEquals(-1F, w.floats().get(0) + w.floats().get(2047));
          assertEquals((short) 0xBF00, half.shorts().get(2047));
        }
        return null;
      });
    }
  }

  @Test
  void oneRanksOverflowSkipsOnAllAndItsStateGoesOn() throws Exception {
    try (Context context = new Context()) {
      Nets.onEach(Communicator.local(context, 2), own -> {
        Array w = Nets.filled(4, 1);
        try (var sharded = new ShardedOptimizer(own, Batch.of("w", w), Map.of("optimizer", "lion")); var scaler = new LossScaler(context)) {
          float scale = (float) scaler.scale();
          assertTrue(sharded.stepScaled(scaler, Nets.filled(4, own.rank() == 1 ? Float.POSITIVE_INFINITY : scale)).skipped());
          assertTrue(scaler.update());
          assertEquals(1F, w.floats().get(0));
          sharded.step(Nets.filled(4, 1));
          Batch state = sharded.gatherState(-1);
          assertEquals(List.of("step", "moment1.w"), state.names());
          assertEquals(own.rank() == 0 ? 2 : 0, sharded.gatherState(0).size());
          state.get("step").longs().put(0, 41);
          sharded.loadState(state);
          assertEquals(42, sharded.step(Nets.filled(4, 1)).step());
        }
        return null;
      });
    }
  }
}
