package org.scaletrain.tests;

import static org.junit.jupiter.api.Assertions.*;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.BooleanSupplier;
import org.scaletrain.*;

/** Small models and batches that many tests need. */
final class Nets {
  static final int ROWS = 8;

  private Nets() {}

  /** A model with one input "x" and one output "prediction". Its loss needs "y". */
  static Model mlp(Context context) {
    return Model.builtin(context, "mlp", Map.of("inputs", 1, "hidden", new long[] {4}, "outputs", 1), 1);
  }

  static Recipe recipe() {
    return new Recipe().batch(ROWS).lr(0.01).weightDecay(0);
  }

  static Trainer trainer(Context context) {
    return new Trainer(mlp(context), recipe());
  }

  /** i / 4 and its square, in direct memory. */
  static Batch batch() {
    Array x = Array.allocate(DType.F32, ROWS, 1), y = Array.allocate(DType.F32, ROWS, 1);
    for (int i = 0; i < ROWS; ++i) {
      x.floats().put(i, i / 4f);
      y.floats().put(i, i * i / 16f);
    }
    return Batch.of("x", x, "y", y);
  }

  /** The same numbers on Java's heap. */
  static Batch heapBatch() {
    Batch direct = batch();
    return Batch.of("x", Array.of(direct.get("x").toFloats(), ROWS, 1), "y", Array.of(direct.get("y").toFloats(), ROWS, 1));
  }

  static Array filled(int count, float value) {
    Array array = Array.allocate(DType.F32, count);
    for (int i = 0; i < count; ++i) array.floats().put(i, value);
    return array;
  }

  /** The code of a rank, which runs on a separate thread. */
  interface Act<T> {
    T by(Communicator own) throws Exception;
  }

  /** Runs act on each rank and returns the results by rank. Rethrows an exception of a rank. */
  static <T> List<T> onEach(List<Communicator> ranks, Act<T> act) throws Exception {
    ExecutorService threads = Executors.newFixedThreadPool(ranks.size());
    try {
      List<Future<T>> all = new ArrayList<>();
      for (Communicator rank : ranks) all.add(threads.submit(() -> act.by(rank)));
      List<T> made = new ArrayList<>();
      for (Future<T> one : all) made.add(one.get());
      return made;
    } finally {
      threads.shutdown();
    }
  }

  /** Collects garbage until `done`, or fails. */
  static void collectUntil(String what, BooleanSupplier done) {
    for (int i = 0; i < 200 && !done.getAsBoolean(); ++i) {
      System.gc();
      try {
        Thread.sleep(10);
      } catch (InterruptedException interrupted) {
        break;
      }
    }
    assertTrue(done.getAsBoolean(), what);
  }

  /** Collects unreachable objects and their native memory, and overwrites freed memory. */
  static void stress() {
    for (int i = 0; i < 3; ++i) {
      System.gc();
      System.runFinalization();
      for (int k = 0; k < 64; ++k) {
        Array other = Array.allocate(DType.F32, 1024);
        for (int j = 0; j < 1024; ++j) other.floats().put(j, Float.NaN);
      }
    }
  }
}
