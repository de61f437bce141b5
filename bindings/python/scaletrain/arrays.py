"""Arrays with the buffer protocol or DLPack, and the names of dtypes."""

from __future__ import annotations

import math
from typing import Any, Mapping, Sequence

from .errors import InvalidArgument
from .handle import Handle, native, of_c

Array = Any
"""An object with the buffer protocol (NumPy, array.array, memoryview, bytearray) or DLPack (PyTorch). It is never copied."""

DTYPES = {"f32": 1, "f64": 2, "bf16": 3, "f16": 4, "i32": 5, "i64": 6, "u8": 7, "bool": 8}
_NAMES = {number: name for name, number in DTYPES.items()}
_OTHER_NAMES = {
    "float32": "f32", "float64": "f64", "bfloat16": "bf16", "float16": "f16", "int32": "i32", "int64": "i64", "uint8": "u8",
}  # fmt: skip
_FORMATS: dict[int, Any] = {1: "f", 2: "d", 3: "H", 4: "e", 5: "i", 6: "q", 7: "B", 8: "?"}
_BYTES = {1: 4, 2: 8, 3: 2, 4: 2, 5: 4, 6: 8, 7: 1, 8: 1}


class Bf16:
    """An array of bf16 elements, given as their bits in 16-bit unsigned integers, since Python has no format for bf16.

    PyTorch's bfloat16 tensors can be passed directly.
    """

    __slots__ = ("bits",)

    def __init__(self, bits: Array) -> None:
        self.bits = bits


def number_of(dtype: object) -> int:
    """The number of a dtype, given as "f32", "float32", numpy.float32 or torch.float32."""
    text = getattr(dtype, "__name__", None) or str(dtype)
    text = text.rsplit(".", 1)[-1]
    found = DTYPES.get(_OTHER_NAMES.get(text, text))
    if found is None:
        raise InvalidArgument(f"dtype must be one of {', '.join(DTYPES)}, got {dtype!r}")
    return found


def name_of(number: int) -> str:
    return _NAMES.get(number, str(number))


def choice(what: str, value: str, choices: Sequence[str]) -> int:
    """The index of a word in choices."""
    try:
        return choices.index(value)
    except ValueError:
        raise InvalidArgument(f"{what} must be one of {', '.join(choices)}, got {value!r}") from None


def capsule_of(source: Any, what: str, stream: int | None = None) -> Any:
    """The DLPack capsule of an object; of one on a device, for use on `stream`. Refuses tensors with PyTorch's lazy negation, which is not
    in their memory and which DLPack cannot express."""
    if hasattr(source, "is_neg") and source.is_neg() is True:
        raise InvalidArgument(f"{what}: the tensor is lazily negated (is_neg()), so its memory has the wrong sign; pass its resolve_neg()")
    return source.__dlpack__() if stream is None else source.__dlpack__(stream=stream)


@of_c("st_view_convert")
def converted(array: Array, dtype: object) -> Any:
    """A copy converted to another dtype, for a call that takes only that one. Integers must fit the new dtype.

    For example converted(x, "f32") for a float64 array, converted(rows, "i32") for an int64 one. Returns a memoryview, which numpy.asarray
    takes without a copy; for "bf16" a Bf16.
    """
    bits = array.bits if isinstance(array, Bf16) else array
    shape: Any = bits.shape if hasattr(bits, "shape") else memoryview(bits).shape
    number = number_of(dtype)
    made: Any = new_array(number, tuple(shape))
    native.convert(array, Bf16(made) if number == DTYPES["bf16"] else made)
    return Bf16(made) if number == DTYPES["bf16"] else made


class _Capsule:
    """One DLPack capsule of an object, kept because the object's next capsule may refer to other memory."""

    __slots__ = ("_capsule", "_device")

    def __init__(self, source: Any) -> None:
        self._device = source.__dlpack_device__()
        self._capsule = capsule_of(source, "array")

    def __dlpack__(self) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> Any:
        return self._device


def is_on_device(array: Array) -> bool:
    """Whether it is a Tensor in the memory of a device."""
    return isinstance(array, Handle) and getattr(array, "_device", 0) != 0


def held(array: Array) -> Array:
    """The same array in a form to be kept while the library uses it: the memory stays in place and cannot be resized.

    A Tensor in the memory of a device is returned as it is: most calls that keep arrays refuse it.
    """
    if isinstance(array, Bf16):
        return Bf16(held(array.bits))
    try:
        return memoryview(array)
    except (TypeError, ValueError, BufferError):
        if not hasattr(array, "__dlpack__") or is_on_device(array):
            return array  # the call itself refuses it and names it
        return _Capsule(array)


def held_by_name(arrays: Mapping[str, Array]) -> dict[str, Array]:
    if not hasattr(arrays, "keys"):  # a Mapping is not required: PyTorch's ParameterDict is none
        raise InvalidArgument(f'arrays must be passed by name, as a dict {{"x": array}}, got a {type(arrays).__name__}')
    return {name: held(arrays[name]) for name in arrays.keys()}


def new_array(dtype: int, shape: Sequence[int]) -> memoryview[Any]:
    """Zeros in memory that Python owns. numpy.asarray and torch.from_numpy take it without a copy (torch.asarray would lose the shape)."""
    count = math.prod(shape)
    memory: Any = memoryview(bytearray(count * _BYTES[dtype]))
    made: memoryview[Any] = memory.cast(_FORMATS[dtype]) if count == 0 else memory.cast(_FORMATS[dtype], shape=list(shape))
    return made


def copy_of(memory: Any) -> memoryview[Any]:
    """A copy in memory that Python owns."""
    seen: Any = memoryview(memory)
    copy: Any = memoryview(bytearray(seen))
    made: memoryview[Any] = copy.cast(seen.format) if seen.nbytes == 0 else copy.cast(seen.format, shape=list(seen.shape))
    return made
