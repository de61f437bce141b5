package org.scaletrain.tests;

import static org.junit.jupiter.api.Assertions.*;

import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;
import org.scaletrain.*;

/** An object serves one call at a time and throws Busy otherwise. close() may be called at any moment, from any thread. */
@Timeout(240)
class ThreadsTest {
  static final int RACES = 3000;

  static Trainer trainerOnData(Context context) {
    return new Trainer(Nets.mlp(context), Nets.recipe(), Data.arrays(context, Nets.batch()));
  }

  /** Runs the check while another thread is in a run of the trainer, between two steps. */
  static void whileRunning(Trainer trainer, Executable check) throws Throwable {
    CountDownLatch inside = new CountDownLatch(1), checked = new CountDownLatch(1);
    CompletableFuture<Void> run = CompletableFuture.runAsync(() -> trainer.runWhile(10, report -> {
      inside.countDown();
      try {
        checked.await();
      } catch (InterruptedException hurry) {
        throw new IllegalStateException(hurry);
      }
      return false;
    }));
    assertTrue(inside.await(60, TimeUnit.SECONDS));
    try {
      check.execute();
    } finally {
      checked.countDown();
      run.join();
    }
  }

  @Test
  void anObjectThatIsInUseSaysSo() throws Throwable {
    try (Context context = new Context(); Trainer trainer = trainerOnData(context)) {
      whileRunning(trainer, () -> {
        for (Executable call : List.<Executable>of(trainer::step, trainer::digest, trainer::close, () -> trainer.advance(null, Duration.ZERO),
                () -> trainer.forward(Nets.batch()), trainer::apply, () -> trainer.gradient("layer.0.weight")))
          assertTrue(assertThrows(Busy.class, call).getMessage().length() > 20);
      });
      assertEquals(2, trainer.step().step());  // the refused calls have changed nothing
    }
  }

  @Test
  void aCallFromACallbackOfAStepIsBusy() {
    try (Context context = new Context(); Trainer trainer = trainerOnData(context)) {
      trainer.setSchedule(k -> trainer.step().lr());
      assertThrows(Busy.class, trainer::step);
      trainer.setSchedule(null);
      trainer.run(1, report -> assertThrows(Busy.class, trainer::close));
      assertEquals(2, trainer.step().step());
    }
  }

  @Test
  void cancelEndsTheCallOfAnotherThread() throws InterruptedException {
    try (Context context = new Context(); Trainer trainer = trainerOnData(context)) {
      for (Runnable cancel : List.<Runnable>of(trainer::cancel, context::cancel)) {
        CompletableFuture<Void> run = CompletableFuture.runAsync(() -> trainer.run(Long.MAX_VALUE));
        while (!run.isDone()) {
          cancel.run();
          Thread.sleep(5);
        }
        assertEquals(Cancelled.class, assertThrows(CompletionException.class, run::join).getCause().getClass());
      }
    }
  }

  @Test
  void stopEndsARunAfterAWholeStep() throws Exception {
    try (Context context = new Context(); Trainer trainer = trainerOnData(context)) {
      CountDownLatch stepped = new CountDownLatch(1);
      CompletableFuture<Void> run = CompletableFuture.runAsync(() -> trainer.run(Long.MAX_VALUE, report -> stepped.countDown()));
      assertTrue(stepped.await(60, TimeUnit.SECONDS));
      trainer.stop();
      assertNull(run.get(60, TimeUnit.SECONDS));
      trainer.step();
    }
  }

  @Test
  void aPredictorServesManyThreadsWhileATrainerSteps() {
    try (Context context = new Context(); Model model = Nets.mlp(context); Trainer trainer = new Trainer(model, Nets.recipe());
        Predictor predictor = new Predictor(model)) {
      Batch x = Batch.of("x", Nets.batch().get("x"));
      float[] expected = answer(predictor, x);
      List<CompletableFuture<Void>> asking = new ArrayList<>();
      for (int thread = 0; thread < 4; ++thread)
        asking.add(CompletableFuture.runAsync(() -> {
          for (int i = 0; i < 300; ++i) assertArrayEquals(expected, answer(predictor, x));
        }));
      for (int step = 0; step < 300; ++step) trainer.step(Nets.batch());
      asking.forEach(CompletableFuture::join);
      predictor.refresh();
      assertFalse(Arrays.equals(expected, answer(predictor, x)));
    }
  }

  private static float[] answer(Predictor predictor, Batch x) {
    float[] prediction = new float[Nets.ROWS];
    predictor.run(x, Batch.of("prediction", Array.of(prediction, Nets.ROWS, 1)));
    return prediction;
  }

  /** Starts calls on three threads and close() on a fourth at once. Returns how many calls succeeded and how many came too late. */
  private static int[] race(List<? extends Handle> objects, List<? extends Runnable> calls) throws Exception {
    AtomicInteger through = new AtomicInteger(), late = new AtomicInteger();
    CyclicBarrier start = new CyclicBarrier(4);
    List<CompletableFuture<Void>> threads = new ArrayList<>();
    for (int t = 0; t < 3; ++t)
      threads.add(CompletableFuture.runAsync(() -> {
        for (Runnable call : calls) {
          await(start);
          for (int i = 0; i < 3; ++i) {
            try {
              call.run();
              through.incrementAndGet();
            } catch (InvalidHandle | Busy | WrongState expected) {
              late.incrementAndGet();
            }
          }
        }
      }, command -> new Thread(command).start()));
    for (Handle object : objects) {
      await(start);
      for (boolean closed = false; !closed;) {
        try {
          object.close();
          closed = true;
        } catch (Busy again) {
          Thread.onSpinWait();
        }
      }
    }
    for (CompletableFuture<Void> thread : threads) thread.get(120, TimeUnit.SECONDS);
    return new int[] {through.get(), late.get()};
  }

  private static void await(CyclicBarrier barrier) {
    try {
      barrier.await(60, TimeUnit.SECONDS);
    } catch (Exception broken) {
      throw new IllegalStateException(broken);
    }
  }

  @Test
  void closeMayRaceCalls() throws Exception {
    long before = Library.liveHandles();
    raceCalls();
    Nets.collectUntil("every handle is given back", () -> Library.liveHandles() <= before);
  }

  private static void raceCalls() throws Exception {
    try (Context context = new Context()) {
      List<Handle> objects = new ArrayList<>();
      List<Runnable> calls = new ArrayList<>();
      Batch batch = Nets.batch(), weights = Batch.of("w", batch.get("x")), x = Batch.of("x", batch.get("x"));
      for (int i = 0; i < RACES; ++i) {
        switch (i % 6) {
          case 0 -> {
            LossScaler scaler = new LossScaler(context);
            objects.add(scaler);
            calls.add(scaler::scale);
          }
          case 1 -> {
            Schedule schedule = new Schedule(Map.of("lr", 0.1));
            objects.add(schedule);
            calls.add(() -> schedule.at(1));
          }
          case 2 -> {
            Optimizer optimizer = new Optimizer(context, weights, "{\"optimizer\": \"adamw\"}");
            objects.add(optimizer);
            calls.add(() -> optimizer.state().get(0).bytes().get(0));
          }
          case 3 -> {
            Trainer trainer = Nets.trainer(context);
            objects.add(trainer);
            calls.add(() -> trainer.step(batch));
          }
          case 4 -> {
            Predictor predictor = new Predictor(Nets.mlp(context));
            objects.add(predictor);
            calls.add(() -> answer(predictor, x));
          }
          default -> {
            Model model = Nets.mlp(context);
            objects.add(model);
            calls.add(model::digest);
          }
        }
      }
      int[] outcomes = race(objects, calls);
      assertTrue(outcomes[0] > 0 && outcomes[1] > 0, "no race: " + outcomes[0] + " got through, " + outcomes[1] + " came too late");
      assertEquals(9 * RACES, outcomes[0] + outcomes[1]);
    }
  }
}
