package org.scaletrain.tests;

import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.scaletrain.*;

/** Programs that end while the library is running; LifetimeTest starts them. */
final class Ending {
  private Ending() {}

  public static void main(String[] arguments) throws Exception {
    Context context = new Context(new ContextOptions().threads(2).log((level, area, text) -> {}).parallel((n, task) -> {
      for (long i = 0; i < n; ++i) task.accept(i);
    }));
    Data data = Data.rows(context, 1024, Map.of("x", ArrayType.f32(1), "y", ArrayType.f32(1)), (rows, arrays) -> {
      if (arguments[0].equals("fill")) System.exit(3);
      for (int i = 0; i < rows.length; ++i) arrays.get("x").setFloat(i, rows[i]);
    });
    Trainer trainer = new Trainer(Nets.mlp(context), Nets.recipe(), data);
    new Optimizer(context, Batch.of("w", Array.allocate(DType.F32, 64)), Map.of()).state();
    CountDownLatch begun = new CountDownLatch(100);
    switch (arguments[0]) {
      case "open" -> trainer.step();
      case "step" -> trainer.run(Long.MAX_VALUE, report -> {
        if (report.step() == 20) System.exit(3);
      });
      case "fill" -> trainer.step();
      case "thread" -> {
        Thread thread = new Thread(() -> {
          try {
            trainer.run(Long.MAX_VALUE, report -> begun.countDown());
          } catch (Cancelled ended) {
            // the rows' function is no longer called
          }
        });
        thread.setDaemon(true);
        thread.start();
        begun.await();
      }
      case "future" -> {
        trainer.runAsync(Long.MAX_VALUE, report -> begun.countDown());
        begun.await();
        System.exit(3);
      }
      case "halt" -> {
        trainer.runAsync(Long.MAX_VALUE, report -> begun.countDown());
        begun.await();
        Runtime.getRuntime().halt(3);
      }
      default -> throw new IllegalArgumentException(arguments[0]);
    }
  }
}
