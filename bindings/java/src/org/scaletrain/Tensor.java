package org.scaletrain;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.scaletrain.internal.Native;
import org.scaletrain.internal.Unreachable;

/** An array with an owner, to hand between libraries (DLPack) without a copy. */
public final class Tensor extends Handle {
  private final org.scaletrain.internal.Tensor raw;
  private final boolean isReadOnly;

  private Tensor(org.scaletrain.internal.Tensor raw, Context context, boolean isReadOnly) {
    this.raw = raw;
    this.isReadOnly = isReadOnly;
    raw.keeps = context.raw;
  }

  /** The library's memory, all zero. */
  @OfC("st_tensor_create")
  public Tensor(Context context, DType dtype, long... dims) {
    this(new org.scaletrain.internal.Tensor(given(context, "Tensor").raw, given(dtype, "Tensor").number(), dims), context, false);
  }

  /**
   * Over the program's array, a direct one, which is kept until the tensor and every DLPack of it is gone. Of one that is read only, so is
   * {@link #array}, and there is no DLPack.
   */
  @OfC("st_tensor_wrap")
  public static Tensor wrap(Context context, Array array) {
    given(array, "Tensor.wrap").held("Tensor.wrap", "the array");
    return new Tensor(org.scaletrain.internal.Tensor.wrap(given(context, "Tensor.wrap").raw, array, array), context, array.isReadOnly());
  }

  /** Over the memory of a {@code DLManagedTensor*} of another library in this process, which it takes over; not when this throws. */
  @OfC("st_tensor_from_dlpack")
  public static Tensor fromDlpack(Context context, long managedTensor) {
    if (managedTensor == 0) throw new InvalidArgument("Tensor.fromDlpack: the pointer is 0");
    return new Tensor(Native.tensor_from_dlpack(given(context, "Tensor.fromDlpack").raw, managedTensor), context, false);
  }

  /** A new {@code DLManagedTensor*} over the same memory, for another library in this process. Whoever gets it calls its deleter. */
  @OfC("st_tensor_to_dlpack")
  public long toDlpack() {
    if (isReadOnly)
      throw new InvalidArgument("Tensor.toDlpack: the tensor is over a read-only array, which DLPack cannot say; copy it, or use array()");
    return raw.to_dlpack();
  }

  /** Its memory, where it lies. It stays there while anything refers to this array or a buffer of it, also after {@link #close}. */
  @OfC("st_tensor_view")
  public Array array() {
    Object[] memory = raw.memory();
    ArrayType type = (ArrayType) memory[0];
    ByteBuffer buffer = (ByteBuffer) memory[1];
    long lease = ((long[]) memory[2])[0];
    Unreachable.then(buffer, () -> Native.end_lease(lease));  // what is sliced of a direct buffer refers to it
    long[] strides = (long[]) memory[3];
    ByteBuffer bytes = buffer.order(ByteOrder.nativeOrder());
    Array array = strides.length == 0 ? Array.of(type.dtype(), bytes, type.dims())
                                      : Array.of(type.dtype(), bytes).strided(type.dims(), strides);
    return isReadOnly ? array.readOnly() : array;
  }

  @Override
  @OfC("st_tensor_destroy")
  public void close() {
    raw.close();
  }
}
