"""Checkpoints: saved arrays are loaded back, also after saves in the background; damage and conflicts are reported."""

import asyncio
import gc
import math
import os
import pathlib
import subprocess
import sys

import numpy
import pytest
from safetensors.numpy import load_file

import scaletrain as st
from nets import mlp, sine, trainer

F32 = numpy.float32
ROOT = pathlib.Path(__file__).parents[2]


def ones(step: int, size: int = 4) -> dict[str, numpy.ndarray]:
    return {"values": numpy.full(size, step, F32)}


def spoil(file: pathlib.Path) -> None:
    """Flips a bit of the file's last byte."""
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)


def names_of(checkpoint: st.Checkpoint) -> list[str]:
    return [entry["name"] for entry in checkpoint.list()]


# Arrays of the program.


def test_every_dtype_and_stride_comes_back(context, tmp_path):
    draw = numpy.random.default_rng(1)
    whole = {name: draw.integers(0, 2 if name == "?" else 100, (6, 8)).astype(name) for name in ("f4", "f8", "f2", "i4", "i8", "u1", "?")}
    whole |= {"number": numpy.array(3.25), "empty": numpy.zeros((3, 0, 2), F32)}
    bits = draw.integers(0, 1 << 15, (3, 5)).astype(numpy.uint16)
    saved = {**whole, **{f"{name}, cut": array.T[::2, 1::3] for name, array in whole.items() if array.ndim == 2}, "bf16": st.Bf16(bits)}
    checkpoint = st.Checkpoint(context, tmp_path / "run")
    checkpoint.save(120, saved)

    into = {name: numpy.zeros((8, 2 * 6), array.dtype).T[::2] if array.ndim == 2 else numpy.ones_like(array) for name, array in whole.items()}
    cut = {f"{name}, cut": numpy.zeros(array.T[::2, 1::3].shape, array.dtype, order="F") for name, array in whole.items() if array.ndim == 2}
    back = numpy.zeros_like(bits)
    addresses = {name: array.ctypes.data for name, array in into.items()}
    report = checkpoint.load({**into, **cut, "bf16": st.Bf16(back)})
    assert report == st.LoadReport(120, "step-00000120", {}, len(saved), (), (), (), ())
    assert {name: array.ctypes.data for name, array in into.items()} == addresses
    assert (back == bits).all()
    for name, array in {**into, **cut}.items():
        assert array.dtype == saved[name].dtype and (array == saved[name]).all(), name


def test_other_tools_of_python_s_give_and_take_arrays(context, tmp_path):
    checkpoint = st.Checkpoint(context, os.fsencode(tmp_path / "run"))
    memory = bytearray(16)
    tensor = st.Tensor(context, "f64", (2,))
    tensor.memory()[0] = 2.5
    checkpoint.save(1, {"bytes": memory, "tensor": tensor, "read only": bytes(range(4))})
    memory.append(1)  # the call holds nothing after it has returned
    read = {"bytes": bytearray(16), "tensor": numpy.zeros(2, F32), "read only": bytearray(4)}  # f64 into f32
    assert checkpoint.load(read).read == 3
    assert read["tensor"].tolist() == [2.5, 0] and read["read only"] == bytes(range(4))
    with pytest.raises(st.InvalidArgument, match='"read only" is read-only'):
        checkpoint.load({**read, "read only": bytes(4)})


def test_the_safetensors_package_reads_arrays(context, tmp_path):
    checkpoint = st.Checkpoint(context, tmp_path / "run")
    checkpoint.save(3, {"w": numpy.arange(6, dtype=F32).reshape(2, 3)})
    checkpoint.export(tmp_path / "w.safetensors", everything=True)
    for file in (tmp_path / "w.safetensors", *(tmp_path / "run" / "step-00000003").glob("*.safetensors")):
        assert load_file(file)["w"].tolist() == [[0, 1, 2], [3, 4, 5]]
    checkpoint.reshard(tmp_path / "two", 2)
    assert st.Checkpoint(context, tmp_path / "two", read_only=True).hash() == checkpoint.hash()


def test_some_by_name_and_under_other_names(context, tmp_path):
    checkpoint = st.Checkpoint(context, tmp_path)
    checkpoint.save(5, {"net.a": numpy.array([1], F32), "net.b": numpy.array([2], F32), "state.c": numpy.array([3], F32)})
    x, y, left = (numpy.array([-1], F32) for _ in range(3))
    with pytest.raises(st.InvalidArgument, match="mine.d") as caught:
        checkpoint.load({"mine.a": x, "mine.d": y}, rename={"net.*": "mine.*"})
    assert x == -1 and caught.value.tensor == "mine.d"
    report = checkpoint.load({"mine.a": x, "mine.d": y}, rename={"net.*": "mine.*"}, partial=True)
    assert x == 1 and report.missing == ("mine.d",) and report.unexpected == ("net.b", "state.c")
    report = checkpoint.load({"mine.b": y, "left": left}, rename={"net.*": "mine.*"}, names=["mine.b", "nothing.*"])
    assert y == 2 and left == -1 and report.read == 1 and report.missing == report.unexpected == ()


def test_metadata_comes_back_as_texts(context, tmp_path):
    checkpoint = st.Checkpoint(context, tmp_path)
    given = {"who": "é\n", "n": 3, "yes": True, "loss": numpy.float32(0.5), "lost": math.nan, "far": numpy.float32(-math.inf), "": ""}
    checkpoint.save(1, ones(1), metadata=given)
    expected = {"who": "é\n", "n": "3", "yes": "true", "loss": "0.5", "lost": "nan", "far": "-inf", "": ""}
    assert checkpoint.load(ones(0)).metadata == expected == checkpoint.inspect()["metadata"]
    for wrong in ({"list": [1]}, {"none": None}, {"in": {"it": 1}}):
        with pytest.raises(st.InvalidArgument, match=next(iter(wrong))):
            checkpoint.save(2, ones(2), metadata=wrong)
    assert len(checkpoint.list()) == 1


def test_what_the_options_keep_stays(context, tmp_path):
    checkpoint = st.Checkpoint(context, tmp_path, keep_last=2, keep_every=4, keep_best=1, best="accuracy", best_is_higher=True)
    for step in range(1, 10):
        checkpoint.save(step, ones(step), metadata={"accuracy": 0.9 if step == 3 else math.nan if step == 5 else 0.1})
    assert [entry["step"] for entry in checkpoint.list()] == [9, 8, 4, 3]
    assert all(entry["problem"] is None for entry in checkpoint.list())


# In the background.


def test_a_save_has_the_values_of_its_call_and_keeps_no_array(context, tmp_path):
    checkpoint = st.Checkpoint(context, tmp_path)
    values, back = numpy.zeros(300_000, F32), numpy.zeros(300_000, F32)
    references = sys.getrefcount(values)
    for step in range(1, 4):
        values[:] = step
        pending = checkpoint.save_async(step, {"values": values})
        assert sys.getrefcount(values) == references
        values[:] = -1
        pending.result()
        assert pending.done() and checkpoint.load({"values": back}).step == step
        assert (back == step).all()
    progress = checkpoint.progress()
    assert (progress.saved, progress.failed, progress.saved_step, progress.bytes_all) == (3, 0, 3, 0)
    assert progress.blocked_seconds > 0 and progress.write_seconds > 0


def test_saves_are_awaited(context, tmp_path):
    async def saves() -> list[str]:
        checkpoint = st.Checkpoint(context, tmp_path, bytes_per_second=4e6, queue=2)
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.001)
                ticks += 1

        ticking = asyncio.create_task(tick())
        await asyncio.gather(*(checkpoint.save_async(step, ones(step, 100_000)) for step in (1, 2)))
        ticking.cancel()
        assert ticks > 10  # the event loop kept running
        return names_of(checkpoint)

    assert asyncio.run(saves()) == ["step-00000002", "step-00000001"]


def test_an_error_of_the_disk_arrives_at_its_pending_or_once_at_wait(context, tmp_path):
    run = tmp_path / "run"
    checkpoint = st.Checkpoint(context, run)
    run.rename(tmp_path / "elsewhere")
    run.write_text("a file in the folder's place")
    with pytest.raises(st.CheckpointError) as caught:
        checkpoint.save_async(2, ones(2)).result()
    assert caught.value.status == "io" and str(run) in caught.value.file and isinstance(caught.value, OSError)
    checkpoint.save_async(3, ones(3)).close()
    with pytest.raises(st.CheckpointError):
        checkpoint.wait(60)
    checkpoint.wait()
    assert checkpoint.progress().failed == 2


def test_close_waits_for_the_save_that_is_under_way(context, tmp_path):
    checkpoint = st.Checkpoint(context, tmp_path, bytes_per_second=4e6)
    pending = checkpoint.save_async(1, ones(1, 200_000))  # 0.2 s
    with pytest.raises(st.Timeout, match="0.01 s"):
        checkpoint.wait(0.01)
    with pytest.raises(TimeoutError):
        pending.result(0)
    checkpoint.close()
    assert pending.done()
    with pytest.raises(st.InvalidHandle):
        checkpoint.progress()


def test_a_program_that_ends_during_a_save_has_saved(tmp_path):
    program = f"""
import numpy, scaletrain as st
checkpoint = st.Checkpoint(st.Context(threads=1), {str(tmp_path)!r}, bytes_per_second=4e6)
checkpoint.save_async(1, {{"values": numpy.ones(200_000, numpy.float32)}})
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, env=os.environ)
    assert (done.returncode, done.stderr) == (0, "")
    assert os.listdir(tmp_path / "step-00000001")


# Conflicts and damage.


def test_one_saves_into_a_folder_and_others_read(context, tmp_path):
    _first = st.Checkpoint(context, tmp_path)
    with pytest.raises(st.Busy, match=str(os.getpid())):
        st.Checkpoint(context, tmp_path)
    with pytest.raises(st.WrongState, match="read_only"):
        st.Checkpoint(context, tmp_path, read_only=True).save(2, ones(2))
    with pytest.raises(FileNotFoundError):
        st.Checkpoint(context, tmp_path / "nothing", read_only=True)


def test_a_damaged_one_is_an_error_with_file_and_tensor(context, tmp_path):
    checkpoint = st.Checkpoint(context, tmp_path)
    for step in (1, 2):
        checkpoint.save(step, ones(step))
    file = next((tmp_path / "step-00000002").glob("*.safetensors"))
    spoil(file)
    back = ones(-1)
    with pytest.raises(st.CheckpointError) as caught:
        checkpoint.load(back, "step-00000002")
    assert (caught.value.status, caught.value.file, caught.value.tensor) == ("corrupt", str(file), "values")
    assert (back["values"] == -1).all()
    with pytest.raises(st.CheckpointError, match="block 0"):
        checkpoint.load(back, "step-00000002", overwrite=True)
    assert (back["values"] != -1).any()  # read directly into the array
    assert checkpoint.verify()["problems"][0]["tensor"] == "values"
    (skipped,) = checkpoint.load(back).skipped
    assert skipped.startswith("step-00000002: ") and (back["values"] == 1).all()


def test_wrong_arguments_are_named(context, tmp_path):
    checkpoint = st.Checkpoint(context, tmp_path / "run")
    with pytest.raises(st.NotFound, match="run"):
        checkpoint.load(ones(0))
    checkpoint.save(1, ones(1))
    wrong = {
        "step must be an integer": lambda: checkpoint.save("1", ones(1)),
        "as a dict": lambda: checkpoint.save(2, [numpy.ones(3)]),
        'format "h"': lambda: checkpoint.save_async(2, {"x": numpy.ones(3, "i2")}),
        "queue": lambda: st.Checkpoint(context, tmp_path / "other", queue=2**31),
        "rename must be a dict": lambda: checkpoint.load(ones(0), rename="values"),
        "metadata must be a dict": lambda: checkpoint.save(2, ones(2), metadata="note"),
        "names must be a list of str": lambda: checkpoint.load(ones(0), names="values"),
        "a Checkpoint is required": lambda: trainer(context).resume(tmp_path),
        "NaN": lambda: checkpoint.wait(math.nan),
    }
    for message, call in wrong.items():
        with pytest.raises((st.ScaleTrainError, TypeError), match=message):
            call()
    assert names_of(checkpoint) == ["step-00000001"] and not (tmp_path / "other").exists()


# Checkpoints of a trainer.


def test_a_resumed_trainer_goes_on_as_if_uninterrupted(context, tmp_path):
    checkpoint = st.Checkpoint(context, tmp_path)
    whole, resumed = (trainer(context, st.Data.arrays(context, sine()), ema_decay=0.9, batch=16) for _ in range(2))
    whole.run(5)
    whole.save_async(checkpoint, metadata={"note": "half"}).result()
    assert resumed.resume(checkpoint)[:3] == (5, "step-00000005", {"note": "half"})
    assert resumed.digest() == checkpoint.hash()
    model = mlp(context, seed=5)
    assert model.load(checkpoint, names=[model.parameters[0].name]).read == 1
    for train in (whole, resumed):
        train.run(7)
    assert resumed.digest() == whole.digest()
    (changed,) = trainer(context, st.Data.arrays(context, sine()), ema_decay=0.9, batch=16, lr=0.02).resume(checkpoint).changed
    assert all(word in changed for word in ("lr", "0.02", "0.01"))


def test_a_trainer_saves_by_itself_and_keeps_the_folder(context, tmp_path):
    train = trainer(context, st.Data.arrays(context, sine()))
    checkpoint = st.Checkpoint(context, tmp_path)
    train.save_every(checkpoint, 1)
    assert train.step().saved_step == -1
    checkpoint.wait()
    del checkpoint
    gc.collect()
    report = train.step()
    assert report.saved_step == 1 and report.save_error is None
    with pytest.raises(st.Busy):
        st.Checkpoint(context, tmp_path)
    train.save_every(None)
    assert names_of(st.Checkpoint(context, tmp_path))[0] == "step-00000002"


def test_the_safetensors_package_reads_a_run(context, tmp_path):
    model = mlp(context)
    train = st.Trainer(model, {"batch": 64, "clip": 0, "ema_decay": 0.9, "beta1": 0.75}, st.Data.arrays(context, sine()))
    train.step()
    gradients = {parameter.name: numpy.array(train.gradient(parameter.name)) for parameter in model.parameters}
    train.save(st.Checkpoint(context, tmp_path))
    weights, state = (load_file(tmp_path / "step-00000001" / f"{kind}.safetensors") for kind in ("model", "optimizer"))
    assert weights.keys() == gradients.keys()
    for name, gradient in gradients.items():
        assert (weights[name] == model.get(name)).all() and weights[name].shape == gradient.shape
        assert (state[f"average.{name}"] == train.average(name)).all()
        assert numpy.allclose(state[f"moment1.{name}"], 0.25 * gradient, rtol=1e-6, atol=0)  # (1 - beta1) g, rounded once or twice
