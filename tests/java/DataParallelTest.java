package org.scaletrain.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;
import org.scaletrain.Array;
import org.scaletrain.Batch;
import org.scaletrain.Communicator;
import org.scaletrain.Context;
import org.scaletrain.DType;
import org.scaletrain.DataParallel;
import org.scaletrain.ReduceOp;
import org.scaletrain.WrongState;

/** Gradients exchanged between ranks while backward goes on, from Java. */
class DataParallelTest {
  private static void act(Communicator own) {
    Array w = Array.allocate(DType.F32, 5), v = Array.allocate(DType.F32, 3);
    for (int i = 0; i < 5; ++i) w.floats().put(i, own.rank());
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
  }

  @Test
  void eachRankHasTheMeanOfAll() throws InterruptedException, ExecutionException {
    ExecutorService threads = Executors.newFixedThreadPool(3);
    try (Context context = new Context()) {
      List<Future<?>> all = new ArrayList<>();
      for (Communicator rank : Communicator.local(context, 3)) all.add(threads.submit(() -> act(rank)));
      for (Future<?> one : all) one.get();
    } finally {
      threads.shutdown();
    }
  }
}
