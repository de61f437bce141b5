package org.scaletrain;

import java.util.ArrayList;
import java.util.List;

/** Where computing happens. What is made of it keeps what it needs after {@link #close}. */
public final class Context extends Handle {
  final org.scaletrain.internal.Context raw;

  /** With all defaults. */
  public Context() {
    this(new ContextOptions());
  }

  /** As the options say. */
  @OfC({"st_context_create"})
  public Context(ContextOptions options) {
    raw = options.create();
  }

  /** Ends what is running in it, from any thread: those calls throw {@link Cancelled}. */
  @OfC("st_context_cancel")
  public void cancel() {
    raw.cancel();
  }

  /** Gives back what is only kept for speed. */
  @OfC("st_context_trim")
  public void trim() {
    raw.trim();
  }

  /** Bytes of its buffers now and at their peak, by what they are for. */
  @OfC({"st_context_memory", "st_memory_role_name"})
  public MemoryStats memory() {
    return (MemoryStats) raw.memory();
  }

  /** Every peak of {@link #memory} is what is there now, and grows from here. */
  @OfC("st_context_reset_peak")
  public void resetPeak() {
    raw.reset_peak();
  }

  /** From now on graphs of this context have the op {@code name}: {@code graph.op(name, x)}. */
  @OfC("st_op_register")
  public void registerOp(String name, HostOp op) {
    given(op, "Context.registerOp");
    int outputs = op.outputs();
    synchronized (raw) {
      List<Object> kept = new ArrayList<>((List<?>) raw.keeps);
      kept.add(op);
      raw.add_op(name, op, outputs, op instanceof DifferentiableOp);
      raw.keeps = kept;  // what was refused is not
    }
  }

  @Override
  @OfC("st_context_destroy")
  public void close() {
    raw.close();
  }
}
