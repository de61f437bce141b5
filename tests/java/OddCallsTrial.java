package org.scaletrain.tests;

import java.io.*;
import java.lang.reflect.Constructor;
import java.lang.reflect.Executable;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Proxy;
import java.nio.*;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.*;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import org.scaletrain.*;

/**
 * Calls all public methods with odd arguments in random order: {@code OddCallsTrial SEED CALLS FOLDER}. Prints exceptions that are not the
 * package's, and at the end the number of calls that succeeded and that were refused.
 */
final class OddCallsTrial {
  /** Calls that take any number as an address, or that may need hours or all memory. */
  private static final Set<String> LEFT_OUT = Set.of("Tensor.fromDlpack", "GemmSchedule.tuneMs", "GenerateOptions.tokens", "Context.calibrate");
  /** The only options used, with short deadlines, since the other ranks rarely make the same call. */
  private static final CommunicatorOptions SOON = new CommunicatorOptions().deadline(Duration.ofMillis(1)).start(Duration.ofMillis(1));
  private static final Set<String> FEW_STEPS = Set.of("run", "runWhile", "runAsync");
  private static final int MOST_OF_A_KIND = 30;
  private static final List<Object> TEXTS =
      List.of("x", "y", "prediction", "mlp", "gpt", "", "{}", "{\"lr\": 1}", "lr", "\ud800", "a/b", "%s\n", "[", "cpu");
  private static final List<Object> DIMS = List.of(new long[0], new long[] {8, 1}, new long[] {2, 3}, new long[] {-1, 1},
      new long[] {Long.MAX_VALUE, 2}, new long[] {Long.MIN_VALUE}, new long[9]);
  private static final List<Object> MAPS = List.of(Map.of(), Map.of("hidden", new int[] {4}), Map.of("batch", 8), Map.of("lr", "x"),
      Map.of("optimizer", "sgd"), Map.of("x", new Object()));

  private final Random random;
  private final Path folder;
  private final Path source;
  private final Map<Class<?>, List<Object>> pool = new HashMap<>();
  private final Map<String, Integer> others = new TreeMap<>();
  private int done;
  private int refused;

  private OddCallsTrial(long seed, Path folder) throws IOException {
    random = new Random(seed);
    this.folder = folder;
    source = Files.writeString(folder.resolve("source.txt"), "a text of some tokens, ".repeat(20));
  }

  public static void main(String[] words) throws Exception {
    OddCallsTrial trial = new OddCallsTrial(Long.parseLong(words[0]), Path.of(words[2]));
    List<Executable> calls = trial.calls();
    for (int i = 0; i < Integer.parseInt(words[1]); ++i) {
      if (i % 500 == 0) trial.begin();
      trial.call(calls.get(trial.random.nextInt(calls.size())));
    }
    trial.others.forEach((what, count) -> System.out.println(what + ", " + count + " times"));
    System.out.println(trial.done + " done, " + trial.refused + " refused");
    System.exit(0);  // even if calls are still running
  }

  /** Adds valid objects to the pool, so that calls get past their first checks. */
  private void begin() {
    Context context = new Context(new ContextOptions().threads(2).memoryLimit(64 << 20));
    Trainer trainer = new Trainer(Nets.mlp(context), Nets.recipe(), Data.arrays(context, Nets.batch()));
    for (Object one : List.of(SOON, context, trainer, Nets.mlp(context), Nets.recipe(), Nets.batch(), Nets.heapBatch(), Array.allocate(DType.F32, 8),
             Array.allocate(DType.I32, 2, 3), Array.of(new float[8]), Array.of(new byte[4], 2, 2), Array.allocate(DType.F32, 4, 1).readOnly(),
             Array.allocate(DType.F32, 0), Array.allocate(DType.F32, 16).strided(new long[] {2, 2}, 1, 4),
             Batch.of("x", Array.allocate(DType.F32, Nets.ROWS, 1)), Batch.of("prediction", Array.of(new float[Nets.ROWS], Nets.ROWS, 1))))
      keep(one);
  }

  private List<Executable> calls() throws IOException, ClassNotFoundException {
    List<Executable> all = new ArrayList<>();
    try (JarFile jar = new JarFile(JavaProgram.jar().toFile())) {
      for (JarEntry entry : jar.stream().toList()) {
        if (!entry.getName().matches("org/scaletrain/[A-Z]\\w*\\.class")) continue;
        Class<?> type = Class.forName(entry.getName().replace('/', '.').replace(".class", ""));
        if (!Modifier.isPublic(type.getModifiers()) || Throwable.class.isAssignableFrom(type) || type.isAnnotation()) continue;
        if (!Modifier.isAbstract(type.getModifiers())) all.addAll(Arrays.asList(type.getConstructors()));
        for (Method method : type.getMethods())
          if (method.getDeclaringClass().getPackage() == Array.class.getPackage() && !method.isSynthetic()) all.add(method);
      }
    }
    all.removeIf(call -> call.getDeclaringClass() == CommunicatorOptions.class
        || nameOf(call).equals("Communicator.local") && call.getParameterCount() == 2);
    all.removeIf(call -> LEFT_OUT.contains(nameOf(call)) || call.getName().equals("valueOf"));
    return all;
  }

  private static String nameOf(Executable call) {
    return call.getDeclaringClass().getSimpleName() + "." + (call instanceof Constructor ? "new" : call.getName());
  }

  private void call(Executable call) throws Exception {
    boolean isOfAnObject = call instanceof Method && !Modifier.isStatic(call.getModifiers());
    Object object = isOfAnObject ? of(call.getDeclaringClass()) : null;
    if (isOfAnObject && object == null) return;
    Object[] arguments = new Object[call.getParameterCount()];
    for (int i = 0; i < arguments.length; ++i) {
      String type = call.getGenericParameterTypes()[i].getTypeName();
      boolean few = FEW_STEPS.contains(call.getName());
      if (call.getDeclaringClass() == Data.class && type.endsWith("Path")) {
        arguments[i] = source;  // writing to a mapped file crashes any program
        continue;
      }
      arguments[i] = type.endsWith(".Array>") ? Map.of("x", of(Array.class))
                     : type.equals("java.util.List<org.scaletrain.ArrayType>") ? List.of(ArrayType.f32(2))
                     : type.endsWith(".ArrayType>") ? Map.of("x", ArrayType.f32(1))
                     : type.endsWith("String, java.lang.String>") ? Map.of("x", "y")
                                                    : argument(call.getParameterTypes()[i], few);
    }
    try {
      call.setAccessible(true);
      Object result = call instanceof Method method ? method.invoke(object, arguments) : ((Constructor<?>) call).newInstance(arguments);
      ++done;
      if (result != null) keep(result);
    } catch (InvocationTargetException thrown) {
      Throwable cause = thrown.getCause();
      ++refused;
      if (cause instanceof ScaleTrainException || cause instanceof IOException || cause instanceof OutOfMemoryError) return;
      // Java's own exceptions for a bad index, and for null instead of an object.
      boolean isJavas = cause instanceof IndexOutOfBoundsException
          || (cause instanceof NullPointerException && Arrays.asList(arguments).contains(null));
      if (!isJavas) others.merge(nameOf(call) + ": " + cause, 1, Integer::sum);
    }
  }

  private void keep(Object one) {
    for (Class<?> type = one.getClass(); type != null && type != Object.class; type = type.getSuperclass()) {
      List<Object> all = pool.computeIfAbsent(type, none -> new ArrayList<>());
      if (all.size() < MOST_OF_A_KIND) all.add(one);
      else all.set(random.nextInt(MOST_OF_A_KIND), one);
    }
  }

  private Object of(Class<?> type) {
    List<Object> all = pool.get(type);
    return all == null ? null : all.get(random.nextInt(all.size()));
  }

  private <T> T one(List<T> of) {
    return of.get(random.nextInt(of.size()));
  }

  private Object argument(Class<?> type, boolean few) {
    if (type == boolean.class) return random.nextBoolean();
    if (type == int.class) return one(List.of(-1, 0, 1, 2, 7, 64, Integer.MAX_VALUE, Integer.MIN_VALUE));
    if (type == long.class && few) return (long) random.nextInt(20);
    if (type == long.class) return one(List.of(-1L, 0L, 1L, 2L, 8L, 64L, 1L << 32, Long.MAX_VALUE, Long.MIN_VALUE));
    if (type == double.class) return one(List.of(-1.0, 0.0, 0.5, 1.0, 1e300, Double.NaN, Double.POSITIVE_INFINITY));
    if (type == float.class) return one(List.of(-1f, 0f, 1f, Float.NaN));
    if (type == short.class || type == byte.class || type == char.class) throw new AssertionError("an argument of " + type);
    if (random.nextInt(25) == 0) return null;
    if (type == String.class) return one(TEXTS);
    if (type == Object.class) return one(List.of("text", 1, -1L, 0.5, true, List.of(1, 2), Map.of("a", 1), new Object()));
    if (type == long[].class) return one(DIMS);
    if (type == int[].class) return one(List.of(new int[0], new int[] {1, 2, 3}, new int[] {-1}));
    if (type == Array[].class) return random.nextBoolean() ? new Array[] {(Array) of(type.componentType())} : new Array[2];
    if (type == Map.class) return one(MAPS);
    if (type == List.class) return random.nextBoolean() ? List.of() : Arrays.asList(of(Value.class), of(Value.class));
    if (type == Path.class) return folder.resolve(one(List.of("a", "b", "none/c", ".")));
    if (type == Duration.class) return one(List.of(Duration.ZERO, Duration.ofMillis(1), Duration.ofMillis(-1)));
    if (type == OutputStream.class) return new ByteArrayOutputStream();
    if (type == InputStream.class) return new ByteArrayInputStream(new byte[random.nextInt(40)]);
    if (type.isEnum()) return one(Arrays.asList(type.getEnumConstants()));
    if (type.isInterface()) return Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, (proxy, method, given) -> nothing(method));
    if (Buffer.class.isAssignableFrom(type)) return buffer(type);
    return of(type);
  }

  private Object buffer(Class<?> type) {
    ByteBuffer bytes = random.nextBoolean() ? ByteBuffer.allocateDirect(64) : ByteBuffer.allocate(64);
    if (random.nextBoolean()) bytes.order(ByteOrder.nativeOrder());
    return switch (type.getSimpleName()) {
      case "FloatBuffer" -> bytes.asFloatBuffer();
      case "DoubleBuffer" -> bytes.asDoubleBuffer();
      case "IntBuffer" -> bytes.asIntBuffer();
      case "LongBuffer" -> bytes.asLongBuffer();
      case "ShortBuffer" -> bytes.asShortBuffer();
      default -> bytes;
    };
  }

  private static Object nothing(Method method) {
    Class<?> type = method.getReturnType();
    if (type == boolean.class) return false;
    if (type == int.class) return 0;
    if (type == long.class) return 0L;
    if (type == double.class) return 0.0;
    return type == String.class ? "" : null;
  }
}
