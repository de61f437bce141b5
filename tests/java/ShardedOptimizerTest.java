package org.scaletrain.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.scaletrain.Array;
import org.scaletrain.Batch;
import org.scaletrain.Communicator;
import org.scaletrain.Context;
import org.scaletrain.DType;
import org.scaletrain.LossScaler;
import org.scaletrain.OptimizerReport;
import org.scaletrain.ReduceOp;
import org.scaletrain.ShardedOptimizer;
import org.scaletrain.WrongState;

/** An optimizer in shards on ranks, from Java. */
class ShardedOptimizerTest {
  private static void onRanks(Context context, int count, Consumer<Communicator> act) throws InterruptedException, ExecutionException {
    ExecutorService threads = Executors.newFixedThreadPool(count);
    try {
      List<Future<?>> all = new ArrayList<>();
      for (Communicator rank : Communicator.local(context, count)) all.add(threads.submit(() -> act.accept(rank)));
      for (Future<?> one : all) one.get();
    } finally {
      threads.shutdown();
    }
  }

  private static Array filled(int size, float value) {
    Array made = Array.allocate(DType.F32, size);
    for (int i = 0; i < size; ++i) made.floats().put(i, value);
    return made;
  }

  @Test
  void eachRankHasTheUpdateByTheMeanOfAll() throws InterruptedException, ExecutionException {
    try (Context context = new Context()) {
      for (int stage = 1; stage <= 2; ++stage) {
        final int of = stage;
        onRanks(context, 3, own -> {
          Array w = filled(5, 1), half = Array.allocate(DType.BF16, 5);
          var settings = Map.of("optimizer", "sgd", "lr", 0.5);
          try (var sharded = new ShardedOptimizer(own, Batch.of("w", w), settings, of, ReduceOp.MEAN, 1 << 20)) {
            OptimizerReport report = sharded.step(filled(5, own.rank()));
            assertEquals(1, report.step());
            assertEquals(0.5F, w.floats().get(4));
            sharded.keepCopies(half);
            sharded.set("lr", 1);
            if (of == 2) {
              sharded.gradientReady(0, filled(5, 1));
              sharded.step();
            } else {
              assertThrows(WrongState.class, () -> sharded.gradientReady(0, w));
              sharded.step(filled(5, 1));
            }
            assertEquals(-0.5F, w.floats().get(0));
            assertEquals((short) 0xBF00, half.shorts().get(4));
          }
        });
      }
    }
  }

  @Test
  void mastersInPiecesAreWholeWhereTheStateIsGathered() throws InterruptedException, ExecutionException {
    try (Context context = new Context()) {
      onRanks(context, 2, own -> {
        Array w = filled(2048, 1), half = Array.allocate(DType.BF16, 2048);
        var settings = Map.of("optimizer", "sgd", "lr", 0.5);
        try (var sharded = new ShardedOptimizer(own, Batch.of("w", w), settings, 1, ReduceOp.MEAN, 1 << 20, true)) {
          sharded.keepCopies(half);
          sharded.step(filled(2048, 1));
          assertEquals((short) 0x3F00, half.shorts().get(0));
          assertEquals((short) 0x3F00, half.shorts().get(2047));
          assertEquals(1.5F, w.floats().get(0) + w.floats().get(2047));
          sharded.gatherState(-1);
          assertEquals(1F, w.floats().get(0) + w.floats().get(2047));
        }
      });
    }
  }

  @Test
  void oneRanksOverflowSkipsOnAllAndItsStateGoesOn() throws InterruptedException, ExecutionException {
    try (Context context = new Context()) {
      onRanks(context, 2, own -> {
        Array w = filled(4, 1);
        try (var sharded = new ShardedOptimizer(own, Batch.of("w", w), Map.of("optimizer", "lion")); var scaler = new LossScaler(context)) {
          float scale = (float) scaler.scale();
          Array g = filled(4, scale);
          if (own.rank() == 1) g.floats().put(3, Float.POSITIVE_INFINITY);
          assertTrue(sharded.stepScaled(scaler, g).skipped());
          assertTrue(scaler.update());
          assertEquals(1F, w.floats().get(0));
          sharded.step(filled(4, 1));
          Batch state = sharded.gatherState(-1);
          assertEquals(List.of("step", "moment1.w"), state.names());
          assertEquals(1, state.get("step").longs().get(0));
          assertEquals(0, sharded.gatherState(0).size() - (own.rank() == 0 ? 2 : 0));
          state.get("step").longs().put(0, 41);
          sharded.loadState(state);
          assertEquals(42, sharded.step(filled(4, 1)).step());
        }
      });
    }
  }
}
