package org.scaletrain;

import java.util.ArrayList;
import java.util.List;

/** The device, threads and memory that computations use. Objects created from a context stay usable after its {@link #close}. */
public final class Context extends Handle {
  final org.scaletrain.internal.Context raw;

  /** With all defaults. */
  public Context() {
    this(new ContextOptions());
  }

  /** With these options. */
  @OfC({"st_context_create"})
  public Context(ContextOptions options) {
    raw = options.create();
  }

  /** Cancels the calls that are running in it; they throw {@link Cancelled}. May be called from any thread. */
  @OfC("st_context_cancel")
  public void cancel() {
    raw.cancel();
  }

  /** Frees memory that is only cached for speed. */
  @OfC("st_context_trim")
  public void trim() {
    raw.trim();
  }

  /**
   * Names the program's stream on the context's device: a {@code cudaStream_t}, 1 for CUDA's default stream, -1 for none. Until then it
   * is 1. CUDA's per-thread default streams are refused. Calls that take an array of the device come after what the stream has been given.
   */
  @OfC("st_context_use_stream")
  public void useStream(long stream) {
    raw.use_stream(stream);
  }

  /** The stream of {@link #useStream}. */
  @OfC("st_context_stream")
  public long stream() {
    return raw.stream();
  }

  /** Current and peak bytes of the context's buffers, by purpose. */
  @OfC({"st_context_memory", "st_memory_role_name"})
  public MemoryStats memory() {
    return (MemoryStats) raw.memory();
  }

  /** Resets every peak of {@link #memory} to the current value. */
  @OfC("st_context_reset_peak")
  public void resetPeak() {
    raw.reset_peak();
  }

  /**
   * Measures how long the instructions of training steps take on this machine, by training small built-in models. Returns JSON. Other work on the
   * machine makes the rates too low.
   *
   * @param seconds time to measure, 0 to 600; the call takes a few more
   * @param quick only the smallest models, on one rank, for which 5 seconds are enough; this predicts large models badly
   */
  @OfC("st_machine_calibrate")
  public String calibrate(double seconds, boolean quick) {
    return raw.calibrate("{\"seconds\": " + seconds + ", \"quick\": " + quick + "}");
  }

  /** Adds the op {@code name} to the graphs of this context: {@code graph.op(name, x)}. */
  @OfC("st_op_register")
  public void registerOp(String name, HostOp op) {
    given(op, "Context.registerOp");
    int outputs = op.outputs();
    synchronized (raw) {
      List<Object> kept = new ArrayList<>((List<?>) raw.keeps);
      kept.add(op);
      raw.add_op(name, op, outputs, op instanceof DifferentiableOp);
      raw.keeps = kept;  // only if add_op did not throw
    }
  }

  @Override
  @OfC("st_context_destroy")
  public void close() {
    raw.close();
  }
}
