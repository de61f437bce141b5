"""A tensor: an array with an owner, to hand between libraries without a copy."""

from __future__ import annotations

from typing import Any, Sequence

from .arrays import Array, held, name_of, number_of
from .context import Context
from .handle import Handle, native, of_c


class Tensor(Handle):
    """The library's memory, all zero. numpy.asarray(t), torch.from_dlpack(t) and memoryview(t.memory()) see it where it lies, and keep it.

    Tensor.of() is one over an array of the program's.
    """

    __slots__ = ()

    @of_c("st_tensor_create")
    def __init__(self, context: Context, dtype: object, shape: Sequence[int]) -> None:
        self._native = native.Tensor(context._native, number_of(dtype), shape)

    @staticmethod
    @of_c("st_tensor_wrap")
    def of(context: Context, array: Array) -> Tensor:
        """Over an array, which is kept until the tensor and all that sees it is gone."""
        tensor = Tensor.__new__(Tensor)
        tensor._native = native.Tensor.wrap(context._native, array, held(array))
        return tensor

    @staticmethod
    @of_c("st_tensor_from_dlpack")
    def from_dlpack(context: Context, source: Any) -> Tensor:
        """Over the memory of whatever has __dlpack__ (PyTorch, NumPy, JAX), in the CPU's memory."""
        tensor = Tensor.__new__(Tensor)
        tensor._native = native.tensor_from_capsule(context._native, source.__dlpack__())
        return tensor

    @of_c("st_tensor_view")
    def memory(self) -> memoryview:
        """Its elements; bf16 as 16-bit unsigned integers. They stay there while this is seen, also after close()."""
        return memoryview(self._native.memory())

    @property
    def dtype(self) -> str:
        return name_of(self._native.memory().dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.memory().shape or ())

    @of_c("st_tensor_to_dlpack")
    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None) -> Any:
        if copy:
            raise BufferError("scaletrain: DLPack of a tensor is its own memory; copy what it gives")
        return self._native.dlpack()

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)  # kDLCPU

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        import numpy

        return numpy.array(self.memory(), dtype=dtype, copy=copy) if copy else numpy.asarray(self.memory(), dtype=dtype)
