"""Weight files: the same verdicts as the package safetensors 0.8.0, dtypes that this library lacks, shards."""

import json
import struct

import numpy
import pytest
import safetensors
from safetensors.numpy import save_file

import scaletrain as st
from nets import mlp


def headed(header: str | bytes, data: bytes = b"12345678") -> bytes:
    text = header.encode() if isinstance(header, str) else header
    return struct.pack("<Q", len(text)) + text + data


def tensor(dtype: str = "F32", shape: str = "[2]", offsets: str = "[0,8]", more: str = "") -> str:
    return f'{{"t":{{"dtype":"{dtype}","shape":{shape},"data_offsets":{offsets}{more}}}}}'


GOOD = tensor()
PAIR = '{"t":{"dtype":"U8","shape":[%d],"data_offsets":[%d,%d]},"u":{"dtype":"U8","shape":[%d],"data_offsets":[%d,%d]}}'
DTYPES = ("BOOL", "F4", "F6_E2M3", "F6_E3M2", "U8", "I8", "F8_E5M2", "F8_E4M3", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "I16", "U16", "F16", "BF16",
          "I32", "U32", "F32", "C64", "F64", "I64", "U64", "C128", "I4", "f32", "")  # fmt: skip
CORPUS = {
    "plain": headed(GOOD),
    "spaces after": headed(GOOD + "   "),
    "blanks after": headed(GOOD + "\n\t\r "),
    "NUL after": headed(GOOD + "\0"),
    "text after": headed(GOOD + "x"),
    "object after": headed(GOOD + "{}"),
    "unknown key": headed(tensor(more=',"more":{"a":[1,-2.5e3,null,true,"x"]}')),
    "unknown key, no number": headed(tensor(more=',"more":1-2')),
    "unknown key, 01": headed(tensor(more=',"more":[01]')),
    "key twice": headed(tensor(more=',"shape":[2]')),
    "metadata twice": headed('{"__metadata__":{"a":"1"},"__metadata__":{"a":"2"}}', b""),
    "metadata null": headed('{"__metadata__":null}', b""),
    "metadata number": headed('{"__metadata__":{"a":1}}', b""),
    "metadata list": headed('{"__metadata__":[]}', b""),
    "no tensors": headed("{}", b""),
    "no tensors, data": headed("{}", b"x"),
    "no header": headed("", b""),
    "list": headed("[]", b""),
    "-0": headed(tensor(offsets="[-0,8]")),
    "1e0": headed(tensor("U8", "[1e0]", "[0,1]"), b"1"),
    "2.0": headed(tensor(shape="[2.0]")),
    "02": headed(tensor(shape="[02]")),
    "-2": headed(tensor(shape="[-2]")),
    "text as a number": headed(tensor(shape='["2"]')),
    "one offset": headed(tensor(offsets="[8]")),
    "three offsets": headed(tensor(offsets="[0,8,8]")),
    "offsets backwards": headed(tensor(offsets="[8,0]")),
    "nine dimensions": headed(tensor("U8", "[1,1,1,1,1,1,1,1,1]", "[0,1]"), b"1"),
    "scalar": headed(tensor("F64", "[]")),
    "wrong length": headed(tensor(shape="[3]")),
    "data too long": headed(GOOD, b"123456789"),
    "data too short": headed(GOOD, b"1234567"),
    "gap": headed(tensor(offsets="[1,9]"), b"123456789"),
    "overlap": headed(PAIR % (2, 0, 2, 2, 1, 3), b"123"),
    "same bytes": headed(PAIR % (2, 0, 2, 2, 0, 2), b"12"),
    "empty first": headed(PAIR % (2, 0, 2, 0, 0, 0), b"12"),
    "empty inside": headed(PAIR % (2, 0, 2, 0, 1, 1), b"12"),
    "shape overflows": headed(tensor(shape="[4294967296,4294967296,2]", offsets="[0,0]"), b""),
    "shape overflows before 0": headed(tensor(shape="[1099511627776,1099511627776,0]", offsets="[0,0]"), b""),
    "0 before a large one": headed(tensor(shape="[0,1099511627776,1099511627776]", offsets="[0,0]"), b""),
    "half bytes": headed(tensor("F4", "[3]", "[0,2]"), b"12"),
    "escapes": headed('{"\\u0061\\ud83d\\ude00\\/\\"":{"dtype":"U8","shape":[1],"dat\\u0061_offsets":[0,1]}}', b"1"),
    "half a surrogate": headed('{"a\\ud800":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}', b"1"),
    "NUL in a name": headed('{"a\\u0000":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}', b"1"),
    "control character": headed('{"a\x01":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}', b"1"),
    "not UTF-8": headed(b'{"a\xff":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}', b"1"),
    "empty name": headed('{"":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}', b"1"),
    "no dtype": headed('{"t":{"shape":[1],"data_offsets":[0,1]}}', b"1"),
    "no shape": headed('{"t":{"dtype":"U8","data_offsets":[0,1]}}', b"1"),
    "no offsets": headed('{"t":{"dtype":"U8","shape":[1]}}', b"1"),
    "tensor null": headed('{"t":null}', b""),
    "comma at the end": headed(GOOD[:-1] + ",}"),
    "unclosed": headed(GOOD[:-1]),
    "seven bytes": b"1234567",
    "header past the end": struct.pack("<Q", 1000) + GOOD.encode(),
    "header of 2^63": struct.pack("<Q", 2**63) + GOOD.encode(),
    **{f"dtype {word}": headed(tensor(word, "[8]", f"[0,{bits}]"), b"x" * bits) for word in DTYPES for bits in (4, 8, 16, 32, 64)},
}
# Cases in which the format's specification is stricter than the package.
STRICTER = {
    "blank before": headed(" " + GOOD),
    "tensor twice": headed('{"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}', b"1"),
    "metadata key twice": headed('{"__metadata__":{"a":"1","a":"2"}}', b""),
}


def is_taken(path, content: bytes) -> bool:
    path.write_bytes(content)
    try:
        found = st.inspect_weights(path)
    except st.CheckpointError as error:
        assert error.file == str(path) and str(path) in str(error)
        return False
    header = json.loads(content[8 : 8 + struct.unpack("<Q", content[:8])[0]])
    header.pop("__metadata__", None)
    rows = {row["name"]: row for row in found["tensors"]}
    assert {name: (row["dtype"], row["shape"]) for name, row in rows.items()} == {k: (v["dtype"], v["shape"]) for k, v in header.items()}
    for name, data in safetensors.deserialize(content):
        assert content[rows[name]["begin"] : rows[name]["end"]] == bytes(data["data"]), name
    return True


def test_headers_are_taken_and_refused_as_the_package_does(tmp_path):
    def by_the_package(content: bytes) -> bool:
        try:
            safetensors.deserialize(content)
            return True
        except safetensors.SafetensorError:
            return False

    verdicts = {case: is_taken(tmp_path / "w.safetensors", content) for case, content in CORPUS.items()}
    assert verdicts == {case: by_the_package(content) for case, content in CORPUS.items()}
    assert not any(is_taken(tmp_path / "w.safetensors", content) for content in STRICTER.values())
    assert all(by_the_package(content) for content in STRICTER.values())


def test_other_dtypes_and_metadata_are_listed(tmp_path):
    odd = 'q"\\\t\u00e9\U0001f600'
    save_file({"w": numpy.ones((2, 2), "f4"), odd: numpy.ones(3, "i1"), "n": numpy.ones(1, "u4")}, tmp_path / "m.safetensors", {odd: odd})
    found = st.inspect_weights(tmp_path / "m.safetensors")
    assert {row["name"]: (row["dtype"], row["shape"], row["readable"]) for row in found["tensors"]} == {
        "w": ("F32", [2, 2], True),
        odd: ("I8", [3], False),
        "n": ("U32", [1], False),
    }
    assert found["foreign"] == 2
    assert [file["metadata"] for file in found["files"]] == [{odd: odd}]


@pytest.mark.parametrize("named", ["folder", "index"])
def test_shards_are_read_with_renames(context, tmp_path, named):
    model, other = mlp(context), mlp(context, seed=9)
    weights = {f"x.{info.name}": numpy.asarray(model.get(info.name)) for info in model.parameters}
    places = {name: f"part-{i % 2}.safetensors" for i, name in enumerate(weights)}
    for shard in set(places.values()):
        save_file({name: weights[name] for name in weights if places[name] == shard}, tmp_path / shard)
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": places}))
    report = other.read_file(tmp_path if named == "folder" else index, rename={"x.*": "*"})
    assert report.read == len(weights) and other.digest() == model.digest()
    (tmp_path / "part-1.safetensors").unlink()
    with pytest.raises(st.NotFound, match=r"shard part-1\.safetensors"):
        other.read_file(index)
