package org.scaletrain;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import org.scaletrain.internal.Native;
import org.scaletrain.internal.Unreachable;

/** An array that owns its memory, to pass between libraries (DLPack) without a copy. */
public final class Tensor extends Handle {
  private final org.scaletrain.internal.Tensor raw;
  private static final int CUDA = 2;  // kDLCUDA
  private final boolean isReadOnly;

  private Tensor(org.scaletrain.internal.Tensor raw, Context context, boolean isReadOnly) {
    this.raw = raw;
    this.isReadOnly = isReadOnly;
    raw.keeps = context.raw;
  }

  /** Allocates zeroed memory of the library: the host's, or that of the context's device if it has its own. */
  @OfC("st_tensor_create")
  public Tensor(Context context, DType dtype, long... dims) {
    this(new org.scaletrain.internal.Tensor(given(context, "Tensor").raw, given(dtype, "Tensor").number(), dims), context, false);
  }

  /**
   * Wraps the program's array, which must be direct. It is kept until the tensor and every DLPack of it is gone. If it is read-only, so is
   * {@link #array}, and {@link #toDlpack} throws.
   */
  @OfC("st_tensor_wrap")
  public static Tensor wrap(Context context, Array array) {
    given(array, "Tensor.wrap").held("Tensor.wrap", "the array");
    return new Tensor(org.scaletrain.internal.Tensor.wrap(given(context, "Tensor.wrap").raw, array, array), context, array.isReadOnly());
  }

  /** Takes ownership of a {@code DLManagedTensor*} of another library in this process. If this throws, ownership stays with the caller. */
  @OfC("st_tensor_from_dlpack")
  public static Tensor fromDlpack(Context context, long managedTensor) {
    if (managedTensor == 0) throw new InvalidArgument("Tensor.fromDlpack: the pointer is 0");
    return new Tensor(Native.tensor_from_dlpack(given(context, "Tensor.fromDlpack").raw, managedTensor), context, false);
  }

  /** A new {@code DLManagedTensor*} over the same memory, for another library in this process. The receiver must call its deleter. */
  @OfC("st_tensor_to_dlpack")
  public long toDlpack() {
    requireWritable();
    return raw.to_dlpack();
  }

  /** The same for elements that {@code stream} writes before: the context's stream waits for it on the device. -1: no waiting. */
  @OfC("st_tensor_from_dlpack_on")
  public static Tensor fromDlpack(Context context, long managedTensor, long stream) {
    if (managedTensor == 0) throw new InvalidArgument("Tensor.fromDlpack: the pointer is 0");
    return new Tensor(Native.tensor_from_dlpack_on(given(context, "Tensor.fromDlpack").raw, managedTensor, stream), context, false);
  }

  /** The same for a receiver that uses the memory on {@code stream}, which waits for the context's stream on the device. -1: no waiting. */
  @OfC("st_tensor_to_dlpack_on")
  public long toDlpack(long stream) {
    requireWritable();
    return raw.dlpack_on(stream);
  }

  /** Whose memory it is: 0 the host's, n that of device n - 1. */
  @OfC("st_tensor_dlpack_device")
  public int device() {
    return raw.device_type() == CUDA ? raw.device_index() + 1 : 0;
  }

  /**
   * The tensor's memory in place. It stays valid while anything refers to this array or a buffer of it, even after {@link #close}. In the
   * memory of a device its elements cannot be read here.
   */
  @OfC("st_tensor_view")
  public Array array() {
    int device = device();
    if (device != 0) return arrayOf(device);
    Object[] memory = raw.memory();
    ArrayType type = (ArrayType) memory[0];
    ByteBuffer buffer = (ByteBuffer) memory[1];
    long lease = ((long[]) memory[2])[0];
    Unreachable.then(buffer, () -> Native.end_lease(lease));  // slices of a direct buffer keep it reachable
    long[] strides = (long[]) memory[3];
    ByteBuffer bytes = buffer.order(ByteOrder.nativeOrder());
    Array array = strides.length == 0 ? Array.of(type.dtype(), bytes, type.dims())
                                      : Array.of(type.dtype(), bytes).strided(type.dims(), strides);
    return isReadOnly ? array.readOnly() : array;
  }

  private Array arrayOf(int device) {
    long[] place = raw.place();
    long lease = place[2];
    ByteBuffer none = ByteBuffer.allocate(0);
    Unreachable.then(none, () -> Native.end_lease(lease));  // arrays made from this one keep it reachable
    Array array = Array.at(none, place[1], device, DType.of((int) place[0]), Arrays.copyOfRange(place, 3, place.length));
    return isReadOnly ? array.readOnly() : array;
  }

  private void requireWritable() {
    if (isReadOnly)
      throw new InvalidArgument("Tensor.toDlpack: DLPack cannot express that this tensor's array is read-only; copy it, or use array()");
  }

  @Override
  @OfC("st_tensor_destroy")
  public void close() {
    raw.close();
  }
}
