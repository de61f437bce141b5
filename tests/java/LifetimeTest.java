package org.scaletrain.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.ref.WeakReference;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.scaletrain.Array;
import org.scaletrain.ArrayType;
import org.scaletrain.Batch;
import org.scaletrain.Busy;
import org.scaletrain.Context;
import org.scaletrain.ContextOptions;
import org.scaletrain.DType;
import org.scaletrain.Data;
import org.scaletrain.Gemm;
import org.scaletrain.GemmProblem;
import org.scaletrain.Graph;
import org.scaletrain.Handle;
import org.scaletrain.InvalidHandle;
import org.scaletrain.Library;
import org.scaletrain.LossScaler;
import org.scaletrain.Model;
import org.scaletrain.Optimizer;
import org.scaletrain.Predictor;
import org.scaletrain.Recipe;
import org.scaletrain.Tensor;
import org.scaletrain.Trainer;
import org.scaletrain.WrongState;

/** Objects go when they are closed or collected, in any order, and leave nothing. */
class LifetimeTest {
  private static List<Handle> some(boolean callbacks) {
    Context context = callbacks ? new Context(new ContextOptions().log((level, area, text) -> {})) : new Context();
    Graph graph = new Graph(context);
    Model model = Nets.mlp(context);
    Recipe recipe = Nets.recipe();
    Data data = callbacks ? Data.rows(context, 16, Map.of("x", ArrayType.f32(1), "y", ArrayType.f32(1)), (rows, arrays) -> {})
                          : Data.arrays(context, Nets.batch());
    Trainer trainer = new Trainer(model, recipe, data);
    List<Handle> all = new ArrayList<>(List.of(context, graph, model, recipe, data, trainer, new Predictor(model), new LossScaler(context),
        new Optimizer(context, Nets.batch(), Map.of()), new Tensor(context, DType.F32, 4), new Gemm(context, new GemmProblem(2, 2, 2))));
    trainer.step();
    return all;
  }

  @Test
  void closedInAnyOrderNothingIsLeft() {
    Nets.collectUntil("other tests' objects", () -> Library.liveHandles() == 0);
    Random random = new Random(1);
    for (int i = 0; i < 60; ++i) {
      List<Handle> all = some(i % 2 == 0);
      Collections.shuffle(all, random);
      all.forEach(Handle::close);
      assertEquals(0, Library.liveHandles());
    }
  }

  @Test
  void whatIsNotClosedGoesWhenItIsCollected() {
    for (int i = 0; i < 20; ++i) some(i % 2 == 0);
    Nets.collectUntil("nothing is left", () -> Library.liveHandles() == 0);
  }

  /** As a service does: its functions refer to it, and it to all that it has made. */
  static final class Service {
    final Context context = new Context(new ContextOptions().log((level, area, text) -> logged()));
    final Data data = Data.rows(context, 16, Map.of("x", ArrayType.f32(1), "y", ArrayType.f32(1)), (rows, arrays) -> logged());
    final Trainer trainer = new Trainer(Nets.mlp(context), Nets.recipe(), data);
    long records;

    Service() {
      trainer.setSchedule(k -> records * 1e-9);
      context.registerOp("own", new CallbacksTest.Triple() {
        @Override
        public int outputs() {
          return records < 0 ? 2 : 1;
        }
      });
    }

    void logged() {
      ++records;
    }
  }

  @Test
  void anObjectWhoseFunctionsReferToItIsCollected() {
    WeakReference<Service> seen = new WeakReference<>(used(new Service()));
    Nets.collectUntil("the service is collected", () -> seen.get() == null);
    Nets.collectUntil("and the library's objects with it", () -> Library.liveHandles() == 0);
  }

  private static Service used(Service service) {
    service.trainer.run(3);
    return service;
  }

  @Test
  void closingRacesWithCalls() throws Exception {
    for (int round = 0; round < 20; ++round) {
      Context context = new Context();
      Trainer trainer = Nets.trainer(context);
      LossScaler scaler = new LossScaler(context);
      Predictor predictor = new Predictor(Nets.mlp(context));
      Optimizer optimizer = new Optimizer(context, Batch.of("w", Array.allocate(DType.F32, 64)), Map.of());
      Batch batch = Nets.batch(), in = Batch.of("x", batch.get("x")), out = Batch.of("prediction", Array.allocate(DType.F32, Nets.ROWS, 1));
      Array gradient = Array.allocate(DType.F32, 64);
      AtomicReference<Throwable> wrong = new AtomicReference<>();
      List<Thread> threads = new ArrayList<>();
      for (Runnable call : List.<Runnable>of(() -> trainer.step(batch), () -> trainer.forward(in), scaler::scale,
               () -> predictor.run(in, out), () -> optimizer.step(gradient), optimizer::state)) {
        Thread thread = new Thread(() -> {
          try {
            while (true) {
              try {
                call.run();
              } catch (Busy | WrongState again) {
                // another thread's call came between
              }
              LockSupport.parkNanos(10_000);  // or close() would find no moment between two calls
            }
          } catch (InvalidHandle closed) {
            return;
          } catch (Throwable other) {
            wrong.set(other);
          }
        });
        threads.add(thread);
        thread.start();
      }
      Thread.sleep(1);
      for (Handle object : List.of(context, trainer, scaler, predictor, optimizer)) close(object);
      for (Thread thread : threads) thread.join(20_000);
      for (Thread thread : threads) assertTrue(!thread.isAlive());
      assertEquals(null, wrong.get());
    }
    Nets.collectUntil("nothing is left", () -> Library.liveHandles() == 0);
  }

  private static void close(Handle object) {
    while (true) {
      try {
        object.close();
        return;
      } catch (Busy inACall) {
        Thread.onSpinWait();
      }
    }
  }

  @ParameterizedTest
  @CsvSource({"open,0", "step,3", "fill,3", "thread,0", "future,3", "halt,3"})
  void aProgramMayEndWhileTheLibraryIsAtWork(String how, int code) throws Exception {
    for (int i = how.equals("fill") ? 1 : 0; i < 2; ++i) {  // there Java waits two seconds for the function that ends it
      List<String> command = new ArrayList<>(List.of(Path.of(System.getProperty("java.home"), "bin/java").toString(), "-Xcheck:jni",
          "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", classes(), "-Dorg.scaletrain.library.path=" + folder(), "org.scaletrain.tests.Ending", how));
      if (Runtime.version().feature() >= 22) command.add(1, "--enable-native-access=ALL-UNNAMED");  // or it warns
      Process program = new ProcessBuilder(command).redirectErrorStream(true).start();
      String said = new String(program.getInputStream().readAllBytes());
      assertTrue(program.waitFor(60, TimeUnit.SECONDS), said);
      assertEquals(code, program.exitValue(), said);
      assertEquals("", said);
    }
  }

  /** Of the tests and the package, wherever this class loader has them. */
  private static String classes() throws Exception {
    return Path.of(LifetimeTest.class.getProtectionDomain().getCodeSource().getLocation().toURI()) + ":"
        + Path.of(Context.class.getProtectionDomain().getCodeSource().getLocation().toURI());
  }

  private static String folder() {
    if (System.getProperty("org.scaletrain.library.path") != null) return System.getProperty("org.scaletrain.library.path");
    try {
      return Path.of(Context.class.getProtectionDomain().getCodeSource().getLocation().toURI()).getParent().toString();
    } catch (java.net.URISyntaxException never) {
      throw new IllegalStateException(never);
    }
  }
}
