package org.scaletrain;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.IntPredicate;
import java.util.function.LongToDoubleFunction;
import java.util.function.Predicate;
import org.scaletrain.internal.Unreachable;

/** Methods that the native side calls. {@code java/native/jvm.hpp} looks them up by name when the library is loaded. */
final class Callbacks {
  private Callbacks() {}

  // Errors and reports.

  static Throwable error(int status, String message, String op, String tensor, String file, String host, String collective, long offset,
      long step, int rank) {
    return ScaleTrainException.of(Status.of(status), message,
        new ScaleTrainException.Details(known(op), known(tensor), known(file), known(host), known(collective), offset, step, rank));
  }

  private static String known(String text) {
    return text.isEmpty() ? null : text;
  }

  static Evaluation evaluation(double loss, double rows, String[] names, double[] means) {
    Map<String, Double> metrics = new LinkedHashMap<>();
    for (int i = 0; i < names.length; ++i) metrics.put(names[i], means[i]);
    return new Evaluation(loss, rows, Collections.unmodifiableMap(metrics));
  }

  static MemoryStats memoryStats(long allocated, long available, long resident, long peak, long limit, Object[] roles) {
    List<MemoryUse> uses = new ArrayList<>();
    for (Object role : roles) uses.add((MemoryUse) role);
    return new MemoryStats(allocated, available, resident, peak, limit, List.copyOf(uses));
  }

  static ParameterInfo parameterInfo(String name, int dtype, long[] dims, boolean trainable) {
    return new ParameterInfo(name, type(dtype, dims), trainable);
  }

  static ReadReport readReport(long read, String[] missing, String[] unexpected) {
    return new ReadReport(read, List.of(missing), List.of(unexpected));
  }

  static LoadReport loadReport(long step, String name, String metadata, long read, String[] missing, String[] unexpected, String[] skipped,
      String[] changed) {
    Map<String, String> texts = new LinkedHashMap<>();
    if (!metadata.isEmpty()) ((Map<?, ?>) Json.parse(metadata)).forEach((key, value) -> texts.put(key.toString(), String.valueOf(value)));
    return new LoadReport(step, name, Collections.unmodifiableMap(texts), read, List.of(missing), List.of(unexpected), List.of(skipped),
        List.of(changed));
  }

  static ArrayType type(int dtype, long[] dims) {
    return new ArrayType(DType.of(dtype), dims);
  }

  // Functions.

  /** A library thread has dropped the last reference to a Java object. */
  static void letGo() {
    Unreachable.letGo();
  }

  static void log(Object listener, int level, String area, String text) {
    ((LogListener) listener).log(LogLevel.of(level), area, text);
  }

  static void parallel(Object parallel, long n, long task) {
    Tasks tasks = new Tasks(task);
    try {
      ((ParallelFor) parallel).run(n, tasks);
    } finally {
      tasks.end();
    }
  }

  @SuppressWarnings("unchecked")
  static boolean step(Object onStep, StepReport report) {
    return ((Predicate<StepReport>) onStep).test(report);
  }

  static boolean token(Object onToken, int token) {
    return ((IntPredicate) onToken).test(token);
  }

  static double rate(Object rate, long step) {
    return ((LongToDoubleFunction) rate).applyAsDouble(step);
  }

  static void write(Object stream, byte[] bytes, int count) throws IOException {
    ((OutputStream) stream).write(bytes, 0, count);
  }

  /** Number of bytes read; 0 at the end of the stream. */
  static int read(Object stream, byte[] bytes, int most) throws IOException {
    InputStream from = (InputStream) stream;
    int count = from.read(bytes, 0, most);
    if (count == 0) throw new IOException("read of " + most + " bytes returned 0; InputStream.read must block, or return -1 at the end");
    if (count > most) throw new IOException("read of at most " + most + " bytes returned " + count);
    return Math.max(0, count);
  }

  static int send(Object transport, int to, byte[] bytes, int count) throws Exception {
    return ((Transport) transport).write(to, bytes, count);
  }

  static int receive(Object transport, int from, byte[] bytes, int most) throws Exception {
    return ((Transport) transport).read(from, bytes, most);
  }

  /** The field names of the rows, and the callback that fills them. */
  record Rows(List<String> names, RowFiller filler) {}

  static void fill(Object rows, long[] ids, Object[] memory) {
    Rows wanted = (Rows) rows;
    List<BorrowedArray> borrowed = borrow(memory, true);
    Map<String, BorrowedArray> arrays = new LinkedHashMap<>();
    for (int i = 0; i < borrowed.size(); ++i) arrays.put(wanted.names().get(i), borrowed.get(i));
    try {
      wanted.filler().fill(ids, arrays);
    } finally {
      end(borrowed);
    }
  }

  static long[] shape(Object op, Object[] inputs) {
    List<ArrayType> types = new ArrayList<>();
    for (Object input : inputs) types.add((ArrayType) input);
    return numbers(((HostOp) op).shape(Collections.unmodifiableList(types)));
  }

  /** Dtype, rank and dims of each type, concatenated; a null type has rank 0. */
  static long[] numbers(List<ArrayType> types) {
    long[] numbers = new long[0];
    for (ArrayType given : types) {
      ArrayType type = given == null ? ArrayType.f32() : given;
      int at = numbers.length;
      numbers = Arrays.copyOf(numbers, at + 2 + type.rank());
      numbers[at] = type.dtype().number();
      numbers[at + 1] = type.rank();
      for (int i = 0; i < type.rank(); ++i) numbers[at + 2 + i] = type.dim(i);
    }
    return numbers;
  }

  static void forward(Object op, Object[] inputs, Object[] outputs) {
    List<BorrowedArray> in = borrow(inputs, false);
    List<BorrowedArray> out = borrow(outputs, true);
    try {
      ((HostOp) op).forward(in, out);
    } finally {
      end(in);
      end(out);
    }
  }

  static void backward(Object op, Object[] inputs, Object[] outputs, Object[] outputGradients, Object[] inputGradients) {
    List<BorrowedArray> in = borrow(inputs, false);
    List<BorrowedArray> out = borrow(outputs, false);
    List<BorrowedArray> given = borrow(outputGradients, false);
    List<BorrowedArray> wanted = borrow(inputGradients, true);
    try {
      ((DifferentiableOp) op).backward(in, out, given, wanted);
    } finally {
      for (List<BorrowedArray> all : List.of(in, out, given, wanted)) end(all);
    }
  }

  /** {@code phase} is 0 for forward, 1 for backwardInput, 2 for backwardWeight; {@code memory} has its four arrays. */
  static void stage(Object stage, int phase, int part, int chunk, int microBatch, Object[] memory) {
    BorrowedArray[] arrays = new BorrowedArray[memory.length / 2];
    for (int i = 0; i < arrays.length; ++i)
      if (memory[2 * i] != null)
        arrays[i] = new BorrowedArray((ArrayType) memory[2 * i], (ByteBuffer) memory[2 * i + 1], phase == 0 && i == 1 || phase == 1 && i == 3);
    StageWork work = new StageWork(part, chunk, microBatch, arrays[0], arrays[1], arrays[2], arrays[3]);
    try {
      switch (phase) {
        case 0 -> ((Stage) stage).forward(work);
        case 1 -> ((Stage) stage).backwardInput(work);
        default -> ((Stage) stage).backwardWeight(work);
      }
    } finally {
      end(Arrays.asList(arrays));
    }
  }

  /** {@code memory} alternates types and buffers. An entry without memory becomes null. */
  private static List<BorrowedArray> borrow(Object[] memory, boolean writable) {
    BorrowedArray[] borrowed = new BorrowedArray[memory.length / 2];
    for (int i = 0; i < borrowed.length; ++i)
      if (memory[2 * i] != null) borrowed[i] = new BorrowedArray((ArrayType) memory[2 * i], (ByteBuffer) memory[2 * i + 1], writable);
    return Collections.unmodifiableList(Arrays.asList(borrowed));
  }

  private static void end(List<BorrowedArray> borrowed) {
    for (BorrowedArray array : borrowed) if (array != null) array.end();
  }

  /** A copy of the library's memory on Java's heap. */
  static Array copied(ArrayType type, ByteBuffer memory) {
    ByteBuffer from = memory.order(ByteOrder.nativeOrder());
    switch (type.dtype()) {
      case F32 -> {
        float[] copy = new float[(int) type.size()];
        from.asFloatBuffer().get(copy);
        return Array.of(copy, type.dims());
      }
      case I32 -> {
        int[] copy = new int[(int) type.size()];
        from.asIntBuffer().get(copy);
        return Array.of(copy, type.dims());
      }
      default -> {
        byte[] copy = new byte[from.remaining()];
        from.get(copy);
        return Array.of(type.dtype(), ByteBuffer.wrap(copy).order(ByteOrder.nativeOrder()), type.dims());
      }
    }
  }
}
