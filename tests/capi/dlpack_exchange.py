"""Exchanges arrays with NumPy through DLPack capsules, without a copy. Skipped (77) if NumPy is missing.

usage: dlpack_exchange.py LIBRARY
"""
import ctypes
import gc
import sys
from ctypes import POINTER, byref, c_int64, c_void_p

from library_calls import F32, Library, exported, imported, live_handles, view_of

try:
    import numpy
except ImportError:
    print("skipped: this python3 has no numpy")
    sys.exit(77)


def ours_to_numpy(st, context):
    tensor = c_void_p()
    st.st_tensor_create(context, F32, 2, (c_int64 * 2)(3, 4), byref(tensor))
    view = view_of(st, tensor)
    values = numpy.from_dlpack(exported(st, tensor))
    assert values.shape == (3, 4) and values.dtype == numpy.float32 and not values.any()
    assert values.ctypes.data == view.data, "a copy was made"
    ctypes.cast(view.data, POINTER(ctypes.c_float))[5] = 2.5
    assert values[1, 1] == 2.5
    st.st_tensor_destroy(tensor)
    assert values[1, 1] == 2.5, "the array keeps the memory"


def numpy_to_ours(st, context):
    values = numpy.arange(24, dtype=numpy.float32).reshape(4, 6)[1:, ::2]  # an offset and strides
    tensor = imported(st, context, values)
    view = view_of(st, tensor)
    assert view.data == values.ctypes.data
    assert (view.dtype, list(view.dims[:2]), list(view.strides[:2])) == (F32, [3, 3], [6, 2])
    held = sys.getrefcount(values)
    st.st_tensor_destroy(tensor)
    gc.collect()
    assert sys.getrefcount(values) < held, "numpy's array was not released"


def main(path):
    st = Library(path)
    context = c_void_p()
    st.st_context_create(None, byref(context))
    ours_to_numpy(st, context)
    numpy_to_ours(st, context)
    st.st_context_destroy(context)
    assert live_handles(st) == 0
    print(f"exchanged with numpy {numpy.__version__}")


main(*sys.argv[1:])
