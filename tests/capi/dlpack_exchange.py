"""Arrays handed to and from NumPy through DLPack capsules, without a copy. Where there is no NumPy: skipped (77), which it says.

usage: dlpack_exchange.py LIBRARY
"""
import ctypes
import gc
import sys
from ctypes import POINTER, byref, c_char_p, c_int32, c_int64, c_void_p, py_object, pythonapi

try:
    import numpy
except ImportError:
    print("skipped: this python3 has no numpy")
    sys.exit(77)

F32 = 1
CAPSULE = b"dltensor"
pythonapi.PyCapsule_New.restype, pythonapi.PyCapsule_New.argtypes = py_object, [c_void_p, c_char_p, c_void_p]
pythonapi.PyCapsule_GetPointer.restype, pythonapi.PyCapsule_GetPointer.argtypes = c_void_p, [py_object, c_char_p]
pythonapi.PyCapsule_SetName.argtypes = [py_object, c_char_p]


class View(ctypes.Structure):
    _fields_ = [("dtype", c_int32), ("rank", c_int32), ("dims", POINTER(c_int64)), ("strides", POINTER(c_int64)),
                ("data", c_void_p), ("bytes", c_int64)]


class Library:
    def __init__(self, path):
        self.lib = ctypes.CDLL(path)
        self.lib.st_last_error.restype = c_char_p

    def __getattr__(self, name):
        def call(*args):
            status = getattr(self.lib, name)(*args)
            assert status == 0, f"{name}: {status}: {self.lib.st_last_error().decode()}"
        return call


class Exported:
    """A DLManagedTensor of ours as the object that numpy.from_dlpack asks for."""

    def __init__(self, managed):
        self.managed = managed

    def __dlpack__(self, **_):
        return pythonapi.PyCapsule_New(self.managed, CAPSULE, None)

    def __dlpack_device__(self):
        return (1, 0)


def ours_to_numpy(st, context):
    tensor, managed = c_void_p(), c_void_p()
    st.st_tensor_create(context, F32, 2, (c_int64 * 2)(3, 4), byref(tensor))
    st.st_tensor_to_dlpack(tensor, byref(managed))
    view = View()
    st.st_tensor_view(tensor, byref(view))
    values = numpy.from_dlpack(Exported(managed.value))
    assert values.shape == (3, 4) and values.dtype == numpy.float32 and not values.any()
    assert values.ctypes.data == view.data, "a copy was made"
    ctypes.cast(view.data, POINTER(ctypes.c_float))[5] = 2.5
    assert values[1, 1] == 2.5
    st.st_tensor_destroy(tensor)
    assert values[1, 1] == 2.5, "the array keeps the memory"


def numpy_to_ours(st, context):
    values = numpy.arange(24, dtype=numpy.float32).reshape(4, 6)[1:, ::2]  # an offset and strides
    capsule = values.__dlpack__()
    managed = c_void_p(pythonapi.PyCapsule_GetPointer(capsule, CAPSULE))
    tensor, view = c_void_p(), View()
    st.st_tensor_from_dlpack(context, managed, byref(tensor))
    pythonapi.PyCapsule_SetName(capsule, b"used_dltensor")  # taken over: the capsule must not end it
    st.st_tensor_view(tensor, byref(view))
    assert view.data == values.ctypes.data
    assert (view.dtype, list(view.dims[:2]), list(view.strides[:2])) == (F32, [3, 3], [6, 2])
    held = sys.getrefcount(values)
    st.st_tensor_destroy(tensor)
    gc.collect()
    assert sys.getrefcount(values) < held, "numpy was not told that we are done"


def main(path):
    st = Library(path)
    context, live = c_void_p(), c_int64(-1)
    st.st_context_create(None, byref(context))
    ours_to_numpy(st, context)
    numpy_to_ours(st, context)
    st.st_context_destroy(context)
    st.st_live_handles(None, byref(live))
    assert live.value == 0
    print(f"exchanged with numpy {numpy.__version__}")


main(*sys.argv[1:])
