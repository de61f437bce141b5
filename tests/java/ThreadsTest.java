package org.scaletrain.tests;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;
import org.scaletrain.Array;
import org.scaletrain.Batch;
import org.scaletrain.Busy;
import org.scaletrain.Cancelled;
import org.scaletrain.Context;
import org.scaletrain.Data;
import org.scaletrain.Handle;
import org.scaletrain.InvalidHandle;
import org.scaletrain.Library;
import org.scaletrain.LossScaler;
import org.scaletrain.Model;
import org.scaletrain.Optimizer;
import org.scaletrain.Predictor;
import org.scaletrain.Schedule;
import org.scaletrain.Trainer;

/** One object serves one call at a time and says so; close() may come at any moment, from any thread. */
@Timeout(240)
class ThreadsTest {
  static final int RACES = 3000;

  static Trainer trainerOnData(Context context) {
    return new Trainer(Nets.mlp(context), Nets.recipe(), Data.arrays(context, Nets.batch()));
  }

  /** While another thread is inside of a run of it, between two steps. */
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
      assertEquals(2, trainer.step().step());  // and nothing has changed
    }
  }

  @Test
  void aCallFromItsOwnCallbackIsBusyAndARunMayBeAsked() {
    try (Context context = new Context(); Trainer trainer = trainerOnData(context)) {
      trainer.setSchedule(k -> trainer.step().lr());
      assertThrows(Busy.class, trainer::step);
      trainer.setSchedule(null);
      List<String> digests = new ArrayList<>();
      trainer.run(3, report -> digests.add(trainer.digest()));
      assertEquals(3, digests.stream().distinct().count());
    }
  }

  @Test
  void cancelEndsTheCallOfAnotherThread() throws InterruptedException {
    try (Context context = new Context(); Trainer trainer = trainerOnData(context)) {
      CompletableFuture<Void> run = CompletableFuture.runAsync(() -> trainer.run(Long.MAX_VALUE));
      while (!run.isDone()) {
        trainer.cancel();
        Thread.sleep(5);
      }
      assertEquals(Cancelled.class, assertThrows(CompletionException.class, run::join).getCause().getClass());
    }
  }

  @Test
  void cancelOfTheContextEndsEveryCallInIt() throws InterruptedException {
    try (Context context = new Context(); Trainer one = trainerOnData(context); Trainer other = trainerOnData(context)) {
      List<CompletableFuture<Void>> runs = new ArrayList<>();
      for (Trainer trainer : List.of(one, other)) runs.add(CompletableFuture.runAsync(() -> trainer.run(Long.MAX_VALUE)));
      while (!runs.stream().allMatch(CompletableFuture::isDone)) {
        context.cancel();
        Thread.sleep(5);
      }
      for (CompletableFuture<Void> run : runs) assertEquals(Cancelled.class, assertThrows(CompletionException.class, run::join).getCause().getClass());
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
  void twoTrainingsInTwoThreadsDoWhatEachDoesAlone() {
    try (Context context = new Context()) {
      String alone = trained(context);
      CompletableFuture<String> here = CompletableFuture.supplyAsync(() -> trained(context));
      CompletableFuture<String> there = CompletableFuture.supplyAsync(() -> trained(new Context()));
      assertEquals(alone, here.join());
      assertEquals(alone, there.join());
    }
  }

  private static String trained(Context context) {
    try (Trainer trainer = Nets.trainer(context)) {
      Batch batch = Nets.batch();
      for (int step = 0; step < 300; ++step) trainer.step(batch);
      return trainer.digest();
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

  /** Calls of three threads and close() of a fourth begin together; returns how many calls got through and how many came too late. */
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
            } catch (InvalidHandle | Busy expected) {
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
    try (Context context = new Context()) {
      List<Handle> objects = new ArrayList<>();
      List<Runnable> calls = new ArrayList<>();
      Batch weights = Batch.of("w", Nets.batch().get("x"));
      for (int i = 0; i < RACES; ++i) {
        switch (i % 4) {
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
            Optimizer optimizer = new Optimizer(context, weights, "{\"optimizer\": \"sgd\"}");
            objects.add(optimizer);
            calls.add(() -> optimizer.set("lr", 0.1));
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
    Nets.collectUntil("every handle is given back", () -> Library.liveHandles() <= before);
  }

  @Test
  void closeMayRaceStepsAndStates() throws Exception {
    long before = Library.liveHandles();
    raceStepsAndStates(300);
    Nets.collectUntil("every handle is given back", () -> Library.liveHandles() <= before);
  }

  private static void raceStepsAndStates(int races) throws Exception {
    try (Context context = new Context()) {
      List<Handle> objects = new ArrayList<>();
      List<Runnable> calls = new ArrayList<>();
      Batch batch = Nets.batch();
      for (int i = 0; i < races; ++i) {
        if (i % 2 == 0) {
          Trainer trainer = Nets.trainer(context);
          objects.add(trainer);
          calls.add(() -> trainer.step(batch));
        } else {
          Optimizer optimizer = new Optimizer(context, Batch.of("w", Nets.batch().get("x")), "{\"optimizer\": \"adamw\"}");
          objects.add(optimizer);
          calls.add(() -> {
            for (String name : optimizer.state().names()) optimizer.state().get(name).bytes().get(0);
          });
        }
      }
      int[] outcomes = race(objects, calls);
      assertEquals(9 * races, outcomes[0] + outcomes[1]);
    }
  }
}
