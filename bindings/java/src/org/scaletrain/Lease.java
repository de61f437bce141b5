package org.scaletrain;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.LinkedHashMap;
import java.util.Map;
import org.scaletrain.internal.Unreachable;

/** An object of the library, as long as buffers show its memory. It refers to none of them. */
final class Lease {
  private final Runnable end;
  private int buffers;
  private boolean closing;

  /** end: gives the object back; it must not refer to what owns this lease. */
  Lease(Runnable end) {
    this.end = end;
  }

  /** Names, types and buffers in turn, as arrays where they lie. */
  synchronized Batch show(Object[] views) {
    Map<String, Array> arrays = new LinkedHashMap<>();
    for (int i = 0; i < views.length; i += 3) {
      ArrayType type = (ArrayType) views[i + 1];
      ByteBuffer buffer = (ByteBuffer) views[i + 2];
      ++buffers;
      Unreachable.then(buffer, this::give);  // what is sliced of a direct buffer refers to it
      arrays.put((String) views[i], Array.of(type.dtype(), buffer.order(ByteOrder.nativeOrder()), type.dims()));
    }
    return Batch.of(arrays);
  }

  /** Now, or when the last buffer has gone. */
  synchronized void close() {
    if (buffers == 0) end.run();
    closing = true;
  }

  private synchronized void give() {
    if (--buffers == 0 && closing) end.run();
  }
}
