"""Data: rows that training draws from, in an endless shuffled stream that is a function of the seed alone."""

from __future__ import annotations

import os
from typing import Any, Callable, Mapping, Sequence

from .arrays import Array, held_by_name, number_of
from .context import Context
from .errors import InvalidArgument
from .handle import Handle, Owned, native, of_c, to_json

FillFunction = Callable[[Any, Sequence[Any]], None]
"""Gets row ids and an array for each field, memoryviews that end with the call, and writes those rows into the arrays."""


class Data(Handle):
    """Rows to train on. Made by files(), arrays() or rows_of()."""

    __slots__ = ("_keeps",)

    def __init__(self, made: Any, keeps: object = None) -> None:
        if not isinstance(made, native.Data):
            raise TypeError("Data is made by Data.files(), Data.arrays() or Data.rows_of()")
        self._native = made
        self._keeps = keeps

    @staticmethod
    @of_c("st_data_files")
    def files(context: Context, path: str | os.PathLike[str], /, **options: Any) -> Data:
        """A text file, a folder of them or a token file. options: context=64, tokens in a row."""
        return Data(native.Data.files(Context._native_of(context), os.fsencode(path), to_json(options)))

    @staticmethod
    @of_c("st_data_arrays")
    def arrays(context: Context, arrays: Mapping[str, Array]) -> Data:
        """Arrays by name, whose first dimension is the rows. Not copied: they are kept, and must not be written to."""
        kept = held_by_name(arrays)
        return Data(native.Data.arrays(Context._native_of(context), native.rows_in(kept), kept, kept))

    @staticmethod
    @of_c("st_data_callback")
    def rows_of(context: Context, rows: int, fields: Mapping[str, tuple[object, Sequence[int]]], fill: FillFunction) -> Data:
        """Rows made when they are wanted. fields: dtype and shape of a row of each, {"x": ("f32", (2,))}.

        fill(row_ids, arrays) writes those rows into the arrays, one for each field. It is called ahead of use, from threads of the
        library's; what it raises arrives at the step that wanted the rows.
        """
        owned = Owned(fill)
        named = []
        for name, field in dict(fields).items():
            try:
                dtype, shape = field
                named.append((name, number_of(dtype), tuple(shape)))
            except InvalidArgument:
                raise
            except (TypeError, ValueError) as problem:
                raise InvalidArgument(f"fields: {name!r} is {field!r}; dtype and shape of a row are wanted, as ('f32', (2,))") from problem
        return Data(native.Data.of_rows(Context._native_of(context), rows, named, owned.weakly()), owned)

    def _about(self) -> str:
        return f"of {self._native.rows()} rows"

    @of_c("st_data_split")
    def split(self, fraction: float, seed: int = 0) -> tuple[Data, Data]:
        """Two over the same source: the first trains, the second, this fraction of the rows, validates."""
        parts = native.DataSplit(self._native, fraction, seed)
        return Data(parts.take_training(), self), Data(parts.take_validation(), self)

    @property
    @of_c("st_data_rows")
    def rows(self) -> int:
        return self._native.rows()  # type: ignore[no-any-return]

    @property
    @of_c("st_data_vocabulary")
    def vocabulary(self) -> int:
        """Of files: how many different tokens there may be."""
        return self._native.vocabulary()  # type: ignore[no-any-return]

    @of_c("st_data_bigram_loss")
    def bigram_loss(self, validation: Data) -> float:
        """What a table of token pairs, counted on this data, makes of `validation`: nats a token."""
        return self._native.bigram_loss(Data._native_of(validation))  # type: ignore[no-any-return]
