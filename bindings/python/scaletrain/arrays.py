"""Arrays of any kind that has the buffer protocol or DLPack, and the names of what their elements are."""

from __future__ import annotations

import math
from typing import Any, Mapping, Sequence

from .errors import InvalidArgument
from .handle import native, of_c

Array = Any
"""Whatever has the buffer protocol (NumPy, array.array, memoryview, bytearray) or DLPack (PyTorch). It is never copied."""

DTYPES = {"f32": 1, "f64": 2, "bf16": 3, "f16": 4, "i32": 5, "i64": 6, "u8": 7, "bool": 8}
_NAMES = {number: name for name, number in DTYPES.items()}
_OTHER_NAMES = {
    "float32": "f32", "float64": "f64", "bfloat16": "bf16", "float16": "f16", "int32": "i32", "int64": "i64", "uint8": "u8",
}  # fmt: skip
_FORMATS: dict[int, Any] = {1: "f", 2: "d", 3: "H", 4: "e", 5: "i", 6: "q", 7: "B", 8: "?"}
_BYTES = {1: 4, 2: 8, 3: 2, 4: 2, 5: 4, 6: 8, 7: 1, 8: 1}


class Bf16:
    """bf16 elements, which Python has no format for, as an array of their bits: 16-bit unsigned integers.

    PyTorch's bfloat16 tensors need none of it.
    """

    __slots__ = ("bits",)

    def __init__(self, bits: Array) -> None:
        self.bits = bits


def number_of(dtype: object) -> int:
    """Of a name: "f32", "float32", numpy.float32, torch.float32."""
    text = getattr(dtype, "__name__", None) or str(dtype)
    text = text.rsplit(".", 1)[-1]
    found = DTYPES.get(_OTHER_NAMES.get(text, text))
    if found is None:
        raise InvalidArgument(f"dtype {dtype!r} is none of {', '.join(DTYPES)}")
    return found


def name_of(number: int) -> str:
    return _NAMES.get(number, str(number))


def choice(what: str, value: str, choices: Sequence[str]) -> int:
    """The number of a word."""
    try:
        return choices.index(value)
    except ValueError:
        raise InvalidArgument(f"{what} {value!r} is none of {', '.join(choices)}") from None


def capsule_of(source: Any, what: str) -> Any:
    """What it gives by DLPack. PyTorch's lazy minus is in no memory, and DLPack has no word for it."""
    if hasattr(source, "is_neg") and source.is_neg() is True:
        raise InvalidArgument(f"{what}: the tensor's minus sign is lazy (is_neg()), and not in its memory; give its resolve_neg()")
    return source.__dlpack__()


@of_c("st_view_convert")
def converted(array: Array, dtype: object) -> Any:
    """A copy with elements of another dtype, for a call that takes that alone: integers that fit it, and anything that becomes floating.

    converted(x, "f32") of a float64 array, converted(rows, "i32") of an int64 one. As memory, which numpy.asarray sees; "bf16" as a Bf16.
    """
    bits = array.bits if isinstance(array, Bf16) else array
    shape: Any = bits.shape if hasattr(bits, "shape") else memoryview(bits).shape
    number = number_of(dtype)
    made: Any = new_array(number, tuple(shape))
    native.convert(array, Bf16(made) if number == DTYPES["bf16"] else made)
    return Bf16(made) if number == DTYPES["bf16"] else made


class _Capsule:
    """What an object gave by DLPack, once: its next capsule may be of other memory."""

    __slots__ = ("_capsule", "_device")

    def __init__(self, source: Any) -> None:
        self._device = source.__dlpack_device__()
        self._capsule = capsule_of(source, "array")

    def __dlpack__(self) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> Any:
        return self._device


def held(array: Array) -> Array:
    """The same array, to be given to the library and kept as long as it has it: it stays where it is, and cannot be resized."""
    if isinstance(array, Bf16):
        return Bf16(held(array.bits))
    try:
        return memoryview(array)
    except (TypeError, ValueError, BufferError):
        return _Capsule(array) if hasattr(array, "__dlpack__") else array  # what is no array, the call refuses by its name


def held_by_name(arrays: Mapping[str, Array]) -> dict[str, Array]:
    if not hasattr(arrays, "keys"):  # what has them may be no Mapping, as PyTorch's ParameterDict
        raise InvalidArgument(f'arrays are given by name, as a dict {{"x": array}}, not as a {type(arrays).__name__}')
    return {name: held(arrays[name]) for name in arrays.keys()}


def new_array(dtype: int, shape: Sequence[int]) -> memoryview[Any]:
    """Zeros that Python owns: numpy.asarray sees them without a copy, and torch.from_numpy that (torch.asarray forgets the shape)."""
    count = math.prod(shape)
    memory: Any = memoryview(bytearray(count * _BYTES[dtype]))
    made: memoryview[Any] = memory.cast(_FORMATS[dtype]) if count == 0 else memory.cast(_FORMATS[dtype], shape=list(shape))
    return made


def copy_of(memory: Any) -> memoryview[Any]:
    """Its elements in memory that Python owns."""
    seen: Any = memoryview(memory)
    copy: Any = memoryview(bytearray(seen))
    made: memoryview[Any] = copy.cast(seen.format) if seen.nbytes == 0 else copy.cast(seen.format, shape=list(seen.shape))
    return made
