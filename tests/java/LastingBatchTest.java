package org.scaletrain.tests;

import static org.junit.jupiter.api.Assertions.*;

import java.time.Duration;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;
import org.scaletrain.*;

/** The library reads the batches of forward() and advance() after these have returned. They stay valid in direct and heap memory, despite the GC. */
class LastingBatchTest {
  static final int STEPS = 3;

  /** The digest after some steps. */
  static String digestAfter(Consumer<Trainer> steps) {
    try (Context context = new Context(); Trainer trainer = Nets.trainer(context)) {
      for (int step = 0; step < STEPS; ++step) steps.accept(trainer);
      return trainer.digest();
    }
  }

  static String digestOf(Supplier<Batch> batch) {
    return digestAfter(trainer -> {
      trainer.forward(batch.get());
      Nets.stress();  // overwrites memory that is not kept
      trainer.backward(null);
      trainer.apply();
    });
  }

  static StepReport advanced(Trainer trainer, Supplier<Batch> batch) {
    for (int slice = 0;; ++slice) {
      Optional<StepReport> report = trainer.advance(batch.get(), Duration.ZERO);
      if (report.isPresent()) return report.get();
      if (slice < 2) Nets.stress();
    }
  }

  @Test
  void forwardKeepsItsBatchUntilBackward() {
    Batch direct = Nets.batch(), heap = Nets.heapBatch();
    String kept = digestOf(() -> direct);
    assertEquals(kept, digestOf(() -> heap));
    assertEquals(kept, digestOf(Nets::batch));
    assertEquals(kept, digestOf(Nets::heapBatch));
  }

  @Test
  void advanceKeepsItsBatchUntilTheStepIsWhole() {
    Batch direct = Nets.batch(), heap = Nets.heapBatch();
    String whole = digestAfter(trainer -> trainer.step(direct));
    assertEquals(whole, digestAfter(trainer -> advanced(trainer, () -> direct)));
    assertEquals(whole, digestAfter(trainer -> advanced(trainer, () -> heap)));
    assertEquals(whole, digestAfter(trainer -> advanced(trainer, Nets::heapBatch)));
  }

  @Test
  void aBatchThatIsGivenAgainIsReadAgain() {
    float[] x = Nets.heapBatch().get("x").toFloats(), y = Nets.heapBatch().get("y").toFloats();
    Batch heap = Batch.of("x", Array.of(x, Nets.ROWS, 1), "y", Array.of(y, Nets.ROWS, 1));
    Batch direct = Nets.batch();
    try (Context context = new Context(); Trainer one = Nets.trainer(context); Trainer other = Nets.trainer(context)) {
      for (int step = 0; step < STEPS; ++step) {
        x[step % Nets.ROWS] += 0.5f;
        direct.get("x").floats().put(x);
        for (Trainer trainer : new Trainer[] {one, other}) {
          trainer.forward(trainer == one ? heap : direct);
          trainer.backward(null);
          trainer.apply();
        }
        one.setSchedule(null);
        advanced(one, () -> heap);
        advanced(other, () -> direct);
      }
      assertEquals(other.digest(), one.digest());
    }
  }
}
