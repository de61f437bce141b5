"""A tensor: an array that owns its memory, to pass between libraries without a copy."""

from __future__ import annotations

from typing import Any, Sequence

from .arrays import Array, Bf16, capsule_of, held, is_on_device, name_of, number_of
from .context import Context
from .handle import Handle, native, of_c


_CUDA = 2  # kDLCUDA
_LEGACY = 1  # CUDA's default stream: what DLPack's stream=None means


class Tensor(Handle):
    """Zeroed memory of the library. numpy.asarray(t), torch.from_dlpack(t) and memoryview(t.memory()) use it in place and keep it alive.

    Tensor.of() wraps an array of the program. In a context of device cuda the memory is the device's: the tensor is an array for calls that
    take arrays there, and torch.from_dlpack(t) can use it; memory() and NumPy cannot.
    """

    __slots__ = ("_writable",)

    @of_c("st_tensor_create")
    def __init__(self, context: Context, dtype: object, shape: Sequence[int]) -> None:
        self._native = native.Tensor(Context._native_of(context), number_of(dtype), shape)
        self._writable = True

    def _about(self) -> str:
        return f"{self.dtype} {self.shape}"

    @staticmethod
    @of_c("st_tensor_wrap")
    def of(context: Context, array: Array) -> Tensor:
        """Wraps an array, which is kept until the tensor and everything that uses its memory is gone. If the array is read-only, so is
        memory(), and DLPack is refused, since it cannot express that."""
        kept = held(array)
        seen = kept.bits if isinstance(kept, Bf16) else kept
        lease = kept._capsule() if is_on_device(kept) else kept  # a capsule keeps the memory of a Tensor that is closed
        return Tensor._of(native.Tensor.wrap(Context._native_of(context), kept, lease), not getattr(seen, "readonly", False))

    @staticmethod
    @of_c("st_tensor_from_dlpack", "st_tensor_from_dlpack_on")
    def from_dlpack(context: Context, source: Any, *, stream: int | None = None) -> Tensor:
        """Wraps the memory of an object with __dlpack__ (PyTorch, NumPy, JAX): the host's, or that of the context's device, in the order of
        Context.stream. Read-only arrays of the host need Tensor.of().

        stream: another stream on which the array is asked for, and for which Context.stream then waits."""
        if not hasattr(source, "__dlpack__"):
            raise TypeError(f"from_dlpack: {source!r:.60} has no __dlpack__(); Tensor.of() takes objects with the buffer protocol")
        on_device = hasattr(source, "__dlpack_device__") and source.__dlpack_device__()[0] == _CUDA
        asked = context.stream if stream is None else stream
        capsule = capsule_of(source, "from_dlpack", asked if on_device else None)
        return Tensor._of(native.tensor_from_capsule(Context._native_of(context), capsule, stream is not None, asked), True)

    @staticmethod
    def _of(made: Any, writable: bool) -> Tensor:
        tensor = Tensor.__new__(Tensor)
        tensor._native, tensor._writable = made, writable
        return tensor

    @of_c("st_tensor_view")
    def memory(self) -> memoryview:
        """The elements; bf16 as 16-bit unsigned integers. The memory stays valid while the memoryview is in use, even after close().

        Raises Unsupported for a tensor in the memory of a device."""
        return memoryview(self._native.memory(self._writable))

    @property
    @of_c("st_tensor_view")
    def dtype(self) -> str:
        return name_of(self._native.dtype())

    @property
    def shape(self) -> tuple[int, ...]:
        return self._native.shape()  # type: ignore[no-any-return]

    @property
    def _device(self) -> int:
        """The number of the device in views; 0 for the host's memory."""
        kind, index = self.__dlpack_device__()
        return index + 1 if kind == _CUDA else 0

    def _capsule(self) -> Any:
        return self._native.dlpack(-1)

    @of_c("st_tensor_to_dlpack", "st_tensor_to_dlpack_on")
    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None) -> Any:
        if copy:
            raise BufferError("scaletrain: DLPack of a tensor shares its memory and cannot be a copy; copy the result instead")
        if not self._writable:
            raise BufferError("scaletrain: DLPack cannot express that this tensor's memory is read-only; use memory(), or copy it")
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            here, there = self.__dlpack_device__(), tuple(dl_device)
            raise BufferError(f"scaletrain: the tensor is on DLPack device {here}, not {there}; copy the result")
        return self._native.dlpack(_LEGACY if stream is None else int(stream))

    @of_c("st_tensor_dlpack_device")
    def __dlpack_device__(self) -> tuple[int, int]:
        return (self._native.device_type(), self._native.device_index())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        import numpy

        return numpy.array(self.memory(), dtype=dtype, copy=copy) if copy else numpy.asarray(self.memory(), dtype=dtype)
