"""libscaletrain.so through ctypes: its calls, its views, and DLPack capsules."""
import ctypes
from ctypes import POINTER, Structure, byref, c_char_p, c_int32, c_int64, c_void_p, py_object, pythonapi

F32 = 1
CAPSULE = b"dltensor"
pythonapi.PyCapsule_New.restype, pythonapi.PyCapsule_New.argtypes = py_object, [c_void_p, c_char_p, c_void_p]
pythonapi.PyCapsule_GetPointer.restype, pythonapi.PyCapsule_GetPointer.argtypes = c_void_p, [py_object, c_char_p]
pythonapi.PyCapsule_SetName.restype, pythonapi.PyCapsule_SetName.argtypes = ctypes.c_int, [py_object, c_char_p]


class View(Structure):
    _fields_ = [("dtype", c_int32), ("rank", c_int32), ("dims", POINTER(c_int64)), ("strides", POINTER(c_int64)),
                ("data", c_void_p), ("bytes", c_int64), ("device", c_int32), ("reserved", c_int32)]


class NamedView(Structure):
    _fields_ = [("name", c_char_p), ("view", View)]


class Library:
    """A call that fails is an AssertionError with the library's message."""

    def __init__(self, path):
        self.lib = ctypes.CDLL(path)
        self.lib.st_last_error.restype = c_char_p

    def __getattr__(self, name):
        def call(*args):
            status = getattr(self.lib, name)(*args)
            assert status == 0, f"{name}: {status}: {self.lib.st_last_error().decode()}"
        return call


class Exported:
    """One of the library's DLManagedTensors, as the object that from_dlpack of NumPy and PyTorch takes."""

    def __init__(self, managed):
        self.managed = managed

    def __dlpack__(self, **_):
        return pythonapi.PyCapsule_New(self.managed, CAPSULE, None)

    def __dlpack_device__(self):
        return (1, 0)


def exported(st, tensor):
    managed = c_void_p()
    st.st_tensor_to_dlpack(tensor, byref(managed))
    return Exported(managed.value)


def imported(st, context, array):
    """A tensor over the memory of `array`, which is kept until the tensor is destroyed."""
    capsule, tensor = array.__dlpack__(), c_void_p()
    managed = c_void_p(pythonapi.PyCapsule_GetPointer(capsule, CAPSULE))
    st.st_tensor_from_dlpack(context, managed, byref(tensor))
    pythonapi.PyCapsule_SetName(capsule, b"used_dltensor")  # consumed: the capsule must not release it
    return tensor


def view_of(st, tensor):
    view = View()
    st.st_tensor_view(tensor, byref(view))
    return view


def live_handles(st):
    live = c_int64(-1)
    st.st_live_handles(None, byref(live))
    return live.value
