package org.scaletrain.tests;

import static org.junit.jupiter.api.Assertions.*;

import java.lang.ref.WeakReference;
import java.util.*;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.scaletrain.*;

/** Objects are freed when they are closed or collected, in any order, and leave nothing behind. */
class LifetimeTest {
  @Test
  void closedInAnyOrderNothingIsLeft() {
    Nets.collectUntil("other tests' objects", () -> Library.liveHandles() == 0);
    Random random = new Random(1);
    for (int i = 0; i < 60; ++i) {
      List<Handle> all = FlatMemoryTrial.objects(false);
      Collections.shuffle(all, random);
      all.forEach(Handle::close);
      assertEquals(0, Library.liveHandles());
    }
  }

  /** Like a service: its callbacks refer to it, and it refers to all objects that it has created. */
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

  @ParameterizedTest
  @CsvSource({"open,0", "step,3", "fill,3", "thread,0", "future,3", "halt,3"})
  void aProgramMayEndWhileTheLibraryIsAtWork(String how, int code) throws Exception {
    for (int i = how.equals("fill") ? 1 : 0; i < 2; ++i) {  // with "fill", Java waits two seconds for the callback that ends the program
      Process program = JavaProgram.ofTests(Ending.class, List.of(), how).start();
      String said = new String(program.getInputStream().readAllBytes());
      assertTrue(program.waitFor(60, TimeUnit.SECONDS), said);
      assertEquals(code, program.exitValue(), said);
      assertEquals("", said);
    }
  }
}
