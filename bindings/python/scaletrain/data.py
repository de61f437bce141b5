"""Data: the rows that training reads, as an endless shuffled stream that depends only on the seed."""

from __future__ import annotations

import os
from typing import Any, Callable, Mapping, Sequence

from .arrays import Array, held_by_name, number_of
from .context import Context
from .errors import InvalidArgument
from .handle import Handle, Owned, native, of_c, to_json

FillFunction = Callable[[Any, Sequence[Any]], None]
"""Receives row ids and one array per field, memoryviews that are valid only during the call, and writes those rows into the arrays."""


class Data(Handle):
    """Rows to train on. Created by files(), arrays() or rows_of()."""

    __slots__ = ("_keeps",)

    def __init__(self, made: Any, keeps: object = None) -> None:
        if not isinstance(made, native.Data):
            raise TypeError("Data is created by Data.files(), Data.arrays() or Data.rows_of()")
        self._native = made
        self._keeps = keeps

    @staticmethod
    @of_c("st_data_files")
    def files(context: Context, path: str | os.PathLike[str], /, **options: Any) -> Data:
        """A text file, a folder of text files or a token file. Option: context=64, the number of tokens per row."""
        return Data(native.Data.files(Context._native_of(context), os.fsencode(path), to_json(options)))

    @staticmethod
    @of_c("st_data_arrays")
    def arrays(context: Context, arrays: Mapping[str, Array]) -> Data:
        """Named arrays whose first dimension is the rows. They are not copied but kept, and must not be written to."""
        kept = held_by_name(arrays)
        return Data(native.Data.arrays(Context._native_of(context), native.rows_in(kept), kept, kept))

    @staticmethod
    @of_c("st_data_callback")
    def rows_of(context: Context, rows: int, fields: Mapping[str, tuple[object, Sequence[int]]], fill: FillFunction) -> Data:
        """Rows that a function produces on demand. fields gives dtype and shape of one row of each field: {"x": ("f32", (2,))}.

        fill(row_ids, arrays) writes those rows into the arrays, one array per field. It is called ahead of use, on threads of the library.
        An exception that it raises is reraised by the step that needs the rows.
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
                raise InvalidArgument(f"fields: {name!r} must be dtype and shape of a row, as ('f32', (2,)), got {field!r}") from problem
        return Data(native.Data.of_rows(Context._native_of(context), rows, named, owned.weakly()), owned)

    def _about(self) -> str:
        return f"of {self._native.rows()} rows"

    @of_c("st_data_split")
    def split(self, fraction: float, seed: int = 0) -> tuple[Data, Data]:
        """Splits the rows into training data and validation data; `fraction` of the rows are for validation. Both use this source."""
        parts = native.DataSplit(self._native, fraction, seed)
        return Data(parts.take_training(), self), Data(parts.take_validation(), self)

    @property
    @of_c("st_data_rows")
    def rows(self) -> int:
        return self._native.rows()  # type: ignore[no-any-return]

    @property
    @of_c("st_data_vocabulary")
    def vocabulary(self) -> int:
        """For data of files: the number of different tokens."""
        return self._native.vocabulary()  # type: ignore[no-any-return]

    @of_c("st_data_bigram_loss")
    def bigram_loss(self, validation: Data) -> float:
        """Loss on `validation`, in nats per token, of a bigram model counted on this data."""
        return self._native.bigram_loss(Data._native_of(validation))  # type: ignore[no-any-return]
