"""Reads and writes torch.save files without PyTorch: with Python's pickle and stand-ins for torch's names that only hold their arguments.
Tensors are numpy arrays."""

import collections
import io
import pickle
import sys
import types
import zipfile

import numpy

STORAGES = {"FloatStorage": "f4", "DoubleStorage": "f8", "HalfStorage": "f2", "IntStorage": "i4", "LongStorage": "i8", "ByteStorage": "u1", "CharStorage": "i1"}


class Storage:
    def __init__(self, kind, key):
        self.kind, self.key = kind, key


def rebuild_tensor(storage, offset, size, stride, *_):
    flat, item = storage[offset:], storage.itemsize
    return numpy.lib.stride_tricks.as_strided(flat, size, [step * item for step in stride]).copy()


class Tensor:
    """Pickles as torch pickles a tensor of this array."""

    def __init__(self, array, key):
        self.array, self.key = array, key

    def __reduce__(self):
        kinds = {numpy.dtype(code): name for name, code in STORAGES.items()}
        array = self.array
        stride = tuple(step // array.itemsize for step in array.strides)
        storage = Storage(getattr(sys.modules["torch"], kinds[array.dtype]), self.key)
        storage.elements = array.size
        return sys.modules["torch._utils"]._rebuild_tensor_v2, (storage, 0, array.shape, stride, False, collections.OrderedDict())


def modules():
    """`torch` and `torch._utils`, for a pickle to refer to."""
    torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")
    for name in STORAGES:
        setattr(torch, name, type(name, (), {"__module__": "torch"}))
    rebuild = types.FunctionType(rebuild_tensor.__code__, globals(), "_rebuild_tensor_v2")
    rebuild.__module__, rebuild.__qualname__ = "torch._utils", "_rebuild_tensor_v2"
    utils._rebuild_tensor_v2 = rebuild
    torch._utils = utils
    return {"torch": torch, "torch._utils": utils}


def save(path, tree):
    """Like torch.save: arrays anywhere in `tree` become tensors."""
    arrays = []

    def with_tensors(value):
        if isinstance(value, numpy.ndarray):
            arrays.append(value)
            return Tensor(value, str(len(arrays) - 1))
        if isinstance(value, dict):
            return type(value)((key, with_tensors(item)) for key, item in value.items())
        if isinstance(value, (list, tuple)):
            return type(value)(with_tensors(item) for item in value)
        return value

    class Pickler(pickle.Pickler):
        def persistent_id(self, value):
            return ("storage", value.kind, value.key, "cpu", value.elements) if isinstance(value, Storage) else None

    others = {name: sys.modules.get(name) for name in ("torch", "torch._utils")}
    sys.modules.update(modules())
    try:
        text = io.BytesIO()
        Pickler(text, protocol=2).dump(with_tensors(tree))
    finally:
        for name, module in others.items():
            sys.modules.pop(name)
            if module is not None:
                sys.modules[name] = module
    save_pickle(path, text.getvalue(), {str(i): array.tobytes(order="A") for i, array in enumerate(arrays)})


def save_pickle(path, text, storages, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("archive/data.pkl", text)
        archive.writestr("archive/byteorder", "little")
        for key, data in storages.items():
            archive.writestr("archive/data/" + key, data)
        archive.writestr("archive/version", "3\n")


def load(path):
    """Like torch.load(weights_only=True): accepts only names that tensors need."""
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        folder = archive.namelist()[0].split("/")[0]

        class Unpickler(pickle.Unpickler):
            def find_class(self, module, name):
                if module == "torch" and name in STORAGES:
                    return numpy.dtype(STORAGES[name])
                return {"torch._utils._rebuild_tensor_v2": rebuild_tensor, "collections.OrderedDict": collections.OrderedDict}[f"{module}.{name}"]

            def persistent_load(self, saved):
                _, dtype, key, _, elements = saved
                data = numpy.frombuffer(archive.read(f"{folder}/data/{key}"), dtype)
                assert len(data) == elements
                return data

        return Unpickler(io.BytesIO(archive.read(folder + "/data.pkl"))).load()
