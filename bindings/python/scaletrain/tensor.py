"""A tensor: an array with an owner, to hand between libraries without a copy."""

from __future__ import annotations

from typing import Any, Sequence

from .arrays import Array, Bf16, capsule_of, held, name_of, number_of
from .context import Context
from .handle import Handle, native, of_c


class Tensor(Handle):
    """The library's memory, all zero. numpy.asarray(t), torch.from_dlpack(t) and memoryview(t.memory()) see it where it lies, and keep it.

    Tensor.of() is one over an array of the program's.
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
        """Over an array, which is kept until the tensor and all that sees it is gone. Of one that is read-only, so is memory(), and there
        is no DLPack, which cannot say so."""
        kept = held(array)
        seen = kept.bits if isinstance(kept, Bf16) else kept
        return Tensor._of(native.Tensor.wrap(Context._native_of(context), kept, kept), not getattr(seen, "readonly", False))

    @staticmethod
    @of_c("st_tensor_from_dlpack")
    def from_dlpack(context: Context, source: Any) -> Tensor:
        """Over the memory of whatever has __dlpack__ (PyTorch, NumPy, JAX), in the CPU's memory."""
        if not hasattr(source, "__dlpack__"):
            raise TypeError(f"from_dlpack: {source!r:.60} has no __dlpack__(); Tensor.of() takes what has the buffer protocol")
        return Tensor._of(native.tensor_from_capsule(Context._native_of(context), capsule_of(source, "from_dlpack")), True)

    @staticmethod
    def _of(made: Any, writable: bool) -> Tensor:
        tensor = Tensor.__new__(Tensor)
        tensor._native, tensor._writable = made, writable
        return tensor

    @of_c("st_tensor_view")
    def memory(self) -> memoryview:
        """Its elements; bf16 as 16-bit unsigned integers. They stay there while this is seen, also after close()."""
        return memoryview(self._native.memory(self._writable))

    @property
    @of_c("st_tensor_view")
    def dtype(self) -> str:
        return name_of(self._native.dtype())

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.memory().shape or ())

    @of_c("st_tensor_to_dlpack")
    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None) -> Any:
        if copy:
            raise BufferError("scaletrain: DLPack of a tensor is its own memory; copy what it gives")
        if not self._writable:
            raise BufferError("scaletrain: the tensor is over read-only memory, which DLPack cannot say; use memory(), or copy it")
        return self._native.dlpack()

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)  # kDLCPU

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        import numpy

        return numpy.array(self.memory(), dtype=dtype, copy=copy) if copy else numpy.asarray(self.memory(), dtype=dtype)
