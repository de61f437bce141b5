package org.scaletrain;

import java.lang.reflect.Constructor;
import java.lang.reflect.Executable;
import java.lang.reflect.Method;
import java.util.HashMap;
import java.util.Map;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** The library's errors name C functions as ways out; here they name the methods that call them. */
final class MethodNames {
  private static final Pattern C_FUNCTION = Pattern.compile("(?<![\\w/.\"-])st_\\w+(?![\\w/\"-])");
  // Reflection does not list the classes of a package; SurfaceTest finds one that is missing.
  private static final Class<?>[] CLASSES = {
      Accumulator.class, Array.class, Checkpoint.class, Communicator.class, Context.class, Data.class, DataParallel.class,
      DistributedSampler.class, Gemm.class, Graph.class, Library.class, LossScaler.class, Model.class, Optimizer.class,
      PackedMatrix.class, Pending.class, Pipeline.class, Plan.class, Predictor.class, Recipe.class, Schedule.class, ShardedOptimizer.class,
      Tensor.class, Trainer.class};

  private static final class Table {
    static final Map<String, String> NAMES = new HashMap<>();

    static {
      for (Class<?> kind : CLASSES)
        Stream.<Executable>concat(Stream.of(kind.getDeclaredMethods()), Stream.of(kind.getDeclaredConstructors())).forEach(Table::add);
    }

    private static void add(Executable call) {
      OfC of = call.getAnnotation(OfC.class);
      if (of == null) return;
      String kind = call.getDeclaringClass().getSimpleName();
      String name = call instanceof Constructor ? "new " + kind : kind + "." + ((Method) call).getName();
      // Prefers the shortest name: reflection lists methods in no fixed order.
      for (String function : of.value())
        NAMES.merge(function, name, (a, b) -> a.length() < b.length() || a.length() == b.length() && a.compareTo(b) < 0 ? a : b);
    }
  }

  private MethodNames() {}

  /** The message with {@code Trainer.forward} for {@code st_trainer_forward}. */
  static String in(String message) {
    if (message == null || !message.contains("st_")) return message;
    return C_FUNCTION.matcher(message).replaceAll(found -> Table.NAMES.getOrDefault(found.group(), found.group()));
  }
}
