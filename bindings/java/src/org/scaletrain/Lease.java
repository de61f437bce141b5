package org.scaletrain;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.LinkedHashMap;
import java.util.Map;
import org.scaletrain.internal.Unreachable;

/** Delays the release of a library object while buffers expose its memory. Holds no reference to these buffers. */
final class Lease {
  private final Runnable end;
  private int buffers;
  private boolean closing;

  /** {@code end} releases the object; it must not refer to the owner of this lease. */
  Lease(Runnable end) {
    this.end = end;
  }

  /** {@code views} repeats name, type and buffer. Returns them as arrays over the same memory. */
  synchronized Batch show(Object[] views) {
    Map<String, Array> arrays = new LinkedHashMap<>();
    for (int i = 0; i < views.length; i += 3) {
      ArrayType type = (ArrayType) views[i + 1];
      ByteBuffer buffer = (ByteBuffer) views[i + 2];
      ++buffers;
      Unreachable.then(buffer, this::give);  // slices of a direct buffer keep it reachable
      arrays.put((String) views[i], Array.of(type.dtype(), buffer.order(ByteOrder.nativeOrder()), type.dims()));
    }
    return Batch.of(arrays);
  }

  /** Releases the object now, or when the last buffer is collected. */
  synchronized void close() {
    if (buffers == 0) end.run();
    closing = true;
  }

  private synchronized void give() {
    if (--buffers == 0 && closing) end.run();
  }
}
