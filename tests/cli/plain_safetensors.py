"""Safetensors files as numpy arrays by name, without the library of that name."""

import json
import struct

import numpy

CODES = {"F32": "<f4", "F64": "<f8", "F16": "<f2", "I32": "<i4", "I64": "<i8", "U8": "u1", "BOOL": "?"}


def read_safetensors(path):
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header, body = json.loads(data[8 : 8 + length]), data[8 + length :]
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        first, last = entry["data_offsets"]
        tensors[name] = numpy.frombuffer(body[first:last], CODES[entry["dtype"]]).reshape(entry["shape"])
    return tensors


def write_safetensors(path, tensors, metadata=None):
    header, body = {"__metadata__": metadata} if metadata else {}, b""
    for name, array in tensors.items():
        word = next(word for word, code in CODES.items() if numpy.dtype(code) == array.dtype)
        header[name] = {"dtype": word, "shape": list(array.shape), "data_offsets": [len(body), len(body) + array.nbytes]}
        body += array.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)
