"""Checkpoints: what is saved comes back, in the background too, and what is damaged or in the way is told."""

import asyncio
import gc
import math
import os
import pathlib
import shutil
import subprocess
import sys
import threading

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
    """Turns a bit of its last byte."""
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)


def names_of(checkpoint: st.Checkpoint) -> list[str]:
    return [entry["name"] for entry in checkpoint.list()]


# Arrays of the program's own.


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
    memory.append(1)  # nothing is held behind the call
    read = {"bytes": bytearray(16), "tensor": numpy.zeros(2, F32), "read only": bytearray(4)}  # f64 into f32
    assert checkpoint.load(read).read == 3
    assert read["tensor"].tolist() == [2.5, 0] and read["read only"] == bytes(range(4))
    with pytest.raises(st.InvalidArgument, match="read only: .*cannot be filled"):
        checkpoint.load({**read, "read only": bytes(4)})


def test_the_safetensors_package_reads_arrays(context, tmp_path):
    checkpoint = st.Checkpoint(context, tmp_path / "run")
    checkpoint.save(3, {"w": numpy.arange(6, dtype=F32).reshape(2, 3)})
    checkpoint.export(tmp_path / "w.safetensors", everything=True)
    for file in (tmp_path / "w.safetensors", *(tmp_path / "run" / "step-00000003").glob("*.safetensors")):
        assert load_file(file)["w"].tolist() == [[0, 1, 2], [3, 4, 5]]


def test_some_by_name_and_under_other_names(context, tmp_path):
    checkpoint = st.Checkpoint(context, tmp_path)
    checkpoint.save(5, {"net.a": numpy.array([1], F32), "net.b": numpy.array([2], F32), "state.c": numpy.array([3], F32)})
    x, y, left = (numpy.array([-1], F32) for _ in range(3))
    with pytest.raises(st.NotFound, match="mine.d") as caught:
        checkpoint.load({"mine.a": x, "mine.d": y}, rename={"net.*": "mine.*"})
    assert x == -1 and caught.value.tensor == "mine.d" and not isinstance(caught.value, FileNotFoundError)
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


def test_one_is_hashed_resharded_and_read_by_itself(context, tmp_path):
    checkpoint = st.Checkpoint(context, tmp_path / "run")
    checkpoint.save(3, {"w": numpy.arange(5000, dtype=F32)})
    checkpoint.save(4, {"w": numpy.zeros(5000, F32)})
    checkpoint.reshard(tmp_path / "three", 3, name="step-00000003")
    one = st.Checkpoint(context, tmp_path / "three", read_only=True)
    assert one.hash() == checkpoint.hash("step-00000003") != checkpoint.hash()
    values = numpy.zeros(5000, F32)
    assert one.load({"w": values}).name == "step-00000003" and values[-1] == 4999
    assert len(list((tmp_path / "three").glob("*.safetensors"))) == 3


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
        assert ticks > 10  # the loop went on
        return names_of(checkpoint)

    assert asyncio.run(saves()) == ["step-00000002", "step-00000001"]


def test_an_error_of_the_disk_arrives_at_its_pending_or_once_at_wait(context, tmp_path):
    run = tmp_path / "run"
    checkpoint = st.Checkpoint(context, run)
    checkpoint.save(1, ones(1))
    run.rename(tmp_path / "elsewhere")
    run.write_text("a file in the folder's place")
    pending = checkpoint.save_async(2, ones(2))
    for _ in range(2):
        with pytest.raises(st.CheckpointError) as caught:
            pending.result()
        assert caught.value.status == "io" and str(run) in caught.value.file and isinstance(caught.value, OSError)
    checkpoint.wait()  # told already
    checkpoint.save_async(3, ones(3)).close()
    with pytest.raises(st.CheckpointError):
        checkpoint.wait(60)
    checkpoint.wait()
    assert checkpoint.progress().failed == 2
    run.unlink()
    (tmp_path / "elsewhere").rename(run)
    checkpoint.save(4, ones(4))
    assert names_of(checkpoint) == ["step-00000004", "step-00000001"]


def test_close_waits_for_the_save_that_is_under_way(context, tmp_path):
    checkpoint = st.Checkpoint(context, tmp_path, bytes_per_second=4e6)
    pending = checkpoint.save_async(1, ones(1, 200_000))  # 0.2 s
    with pytest.raises(st.Timeout, match="0.01 s"):
        checkpoint.wait(0.01)
    with pytest.raises(TimeoutError):
        pending.result(0)
    assert 0 < checkpoint.progress().bytes_all
    checkpoint.close()
    assert pending.done()
    pending.result()
    with pytest.raises(st.InvalidHandle):
        checkpoint.progress()
    assert st.Checkpoint(context, tmp_path).load(ones(0, 200_000)).step == 1  # the folder is free again


def test_a_program_that_ends_during_a_save_has_saved(tmp_path):
    program = f"""
import numpy, scaletrain as st
checkpoint = st.Checkpoint(st.Context(threads=1), {str(tmp_path)!r}, bytes_per_second=4e6)
checkpoint.save_async(1, {{"values": numpy.ones(200_000, numpy.float32)}})
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, env=os.environ)
    assert (done.returncode, done.stderr) == (0, "")
    assert os.listdir(tmp_path / "step-00000001")


def test_the_interpreter_and_other_threads_go_on_meanwhile(context, tmp_path):
    checkpoint = st.Checkpoint(context, tmp_path, bytes_per_second=4e6)
    seen, stop = [], threading.Event()

    def watch() -> None:
        while not stop.is_set():
            seen.append(checkpoint.progress().bytes_done)

    thread = threading.Thread(target=watch)
    thread.start()
    checkpoint.save(1, ones(1, 200_000))
    stop.set()
    thread.join()
    assert len(seen) > 10 and max(seen) > 0


def test_the_child_of_a_fork_says_so_and_the_parent_saves_on(context, tmp_path):
    checkpoint = st.Checkpoint(context, tmp_path)
    child = os.fork()
    if child == 0:
        try:
            checkpoint.save(1, ones(1))
        except st.WrongState as error:
            os._exit(0 if "fork" in str(error) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    checkpoint.save(2, ones(2))
    assert names_of(checkpoint) == ["step-00000002"]


# What is in the way.


def test_two_do_not_save_into_one_folder(context, tmp_path):
    checkpoint = st.Checkpoint(context, tmp_path)
    with pytest.raises(st.Busy, match=str(os.getpid())):
        st.Checkpoint(context, tmp_path)
    checkpoint.save(1, ones(1))
    reader = st.Checkpoint(context, tmp_path, read_only=True)
    assert reader.load(ones(0)).step == 1
    for call in (lambda: reader.save(2, ones(2)), lambda: reader.save_async(2, ones(2)), lambda: trainer(context).save(reader)):
        with pytest.raises(st.WrongState, match="read_only"):
            call()
    with pytest.raises(FileNotFoundError):
        st.Checkpoint(context, tmp_path / "nothing", read_only=True)


def test_a_damaged_one_is_passed_over_and_its_reason_told(context, tmp_path):
    checkpoint = st.Checkpoint(context, tmp_path)
    for step in (1, 2):
        checkpoint.save(step, ones(step))
    file = next((tmp_path / "step-00000002").glob("*.safetensors"))
    assert checkpoint.verify()["problems"] == []
    spoil(file)
    back = ones(-1)
    with pytest.raises(st.CheckpointError) as caught:
        checkpoint.load(back, "step-00000002")
    assert (caught.value.status, caught.value.file, caught.value.tensor) == ("corrupt", str(file), "values")
    assert (back["values"] == -1).all()
    (problem,) = checkpoint.verify()["problems"]
    assert problem["tensor"] == "values" and problem["block"] == 0
    with pytest.raises(st.CheckpointError, match="block 0"):
        checkpoint.load(back, "step-00000002", overwrite=True)
    assert (back["values"] != -1).any()  # read straight into it
    report = checkpoint.load(back, overwrite=True)
    assert report.step == 1 and (back["values"] == 1).all()
    assert len(report.skipped) == 1 and report.skipped[0].startswith("step-00000002: ")
    spoil(next((tmp_path / "step-00000001").glob("*.safetensors")))
    with pytest.raises(st.CheckpointError, match="none of the 2"):
        checkpoint.load(back)


def test_wrong_arguments_are_named(context, tmp_path):
    checkpoint = st.Checkpoint(context, tmp_path / "run")
    with pytest.raises(st.NotFound, match="run"):
        checkpoint.load(ones(0))
    checkpoint.save(1, ones(1))
    wrong = {
        "step is -1": lambda: checkpoint.save(-1, ones(1)),
        "step: an integer is wanted": lambda: checkpoint.save("1", ones(1)),
        "as a dict": lambda: checkpoint.save(2, [numpy.ones(3)]),
        "n is 0": lambda: checkpoint.save(2, {}),
        'format "h"': lambda: checkpoint.save_async(2, {"x": numpy.ones(3, "i2")}),
        "keep_last is -1": lambda: st.Checkpoint(context, tmp_path / "other", keep_last=-1),
        "best is": lambda: st.Checkpoint(context, tmp_path / "other", keep_best=1),
        "queue": lambda: st.Checkpoint(context, tmp_path / "other", queue=2**31),
        "bytes_per_second is": lambda: st.Checkpoint(context, tmp_path / "other", bytes_per_second=math.nan),
        "rename: a dict": lambda: checkpoint.load(ones(0), rename="values"),
        "metadata: a dict": lambda: checkpoint.save(2, ones(2), metadata="note"),
        "names: a list of texts": lambda: checkpoint.load(ones(0), names="values"),
        "step-00000007": lambda: checkpoint.load(ones(0), "step-00000007"),
        r"\[4\].*\[5\]": lambda: checkpoint.load(ones(0, 5)),
        "a Checkpoint is wanted": lambda: trainer(context).resume(tmp_path),
        "steps and minutes are 0": lambda: trainer(context).save_every(checkpoint),
        "shards is -1": lambda: checkpoint.reshard(tmp_path / "other", -1),
        "NaN": lambda: checkpoint.wait(math.nan),
    }
    for message, call in wrong.items():
        with pytest.raises((st.ScaleTrainError, TypeError), match=message):
            call()
    assert names_of(checkpoint) == ["step-00000001"] and not (tmp_path / "other").exists()


# A trainer's.


def steps_of(context, steps, **keys):
    """A trainer that draws shuffled rows."""
    x = numpy.linspace(-3, 3, 256, dtype=F32).reshape(256, 1)
    train = trainer(context, st.Data.arrays(context, {"x": x, "y": numpy.sin(x)}), ema_decay=0.9, **keys)
    if steps > 0:
        train.run(steps)
    return train


def test_a_resumed_trainer_goes_on_as_if_uninterrupted(context, tmp_path):
    checkpoint = st.Checkpoint(context, tmp_path)
    whole = steps_of(context, 5)
    whole.save(checkpoint, metadata={"note": "half"})
    half = whole.digest()
    assert checkpoint.hash() == half
    whole.run(10)
    pending = whole.save_async(checkpoint)
    pending.result()

    resumed = steps_of(context, 0)
    report = resumed.resume(checkpoint, "step-00000005")
    assert report.step == 5 and report.metadata == {"note": "half"} and report.changed == () and resumed.digest() == half
    assert resumed.step().step == 6
    resumed.run(10)
    assert resumed.digest() == whole.digest()

    spoil(next((tmp_path / "step-00000010").glob("model*.safetensors")))
    other = steps_of(context, 2, lr=0.02)
    report = other.resume(checkpoint)
    assert report.step == 5 and report.skipped[0].startswith("step-00000010: ")
    assert len(report.changed) == 1 and all(word in report.changed[0] for word in ("lr", "0.02", "0.01"))
    before = other.digest()
    with pytest.raises(st.CheckpointError):
        other.resume(checkpoint, "step-00000010")
    with pytest.raises(st.InvalidArgument, match="seed"):
        steps_of(context, 1, seed=9).resume(checkpoint)
    assert other.digest() == before


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


def test_a_model_takes_the_weights_alone(context, tmp_path):
    checkpoint = st.Checkpoint(context, tmp_path)
    model = mlp(context, seed=4)
    train = st.Trainer(model, {"batch": 64}, st.Data.arrays(context, sine()))
    train.run(3)
    train.save(checkpoint)
    other = mlp(context, seed=5)
    report = other.load(checkpoint)
    assert other.digest() == model.digest() and report.step == 3 and report.read == len(model.parameters)
    third, first = mlp(context, seed=6), model.parameters[0].name
    untouched = numpy.array(third.get(model.parameters[1].name))
    assert third.load(checkpoint, names=[first]).read == 1
    assert (numpy.array(third.get(first)) == model.get(first)).all() and (numpy.array(third.get(model.parameters[1].name)) == untouched).all()
    with pytest.raises(st.InvalidArgument):
        st.Model.builtin(context, "mlp", hidden=[9]).load(checkpoint)


def test_a_trainer_saves_by_itself_and_tells_what_fails(context, tmp_path):
    run = tmp_path / "run"
    checkpoint = st.Checkpoint(context, run)
    train = steps_of(context, 0)
    train.save_every(checkpoint, 2)
    reports = []
    train.run(5, reports.append)
    checkpoint.wait()
    assert names_of(checkpoint) == ["step-00000004", "step-00000002"] and all(report.save_error is None for report in reports)
    assert reports[0].saved_step == -1 and train.step().saved_step == 4
    checkpoint.wait()
    shutil.rmtree(run)
    run.write_text("in the way")
    train.run(8)  # the save of step 8 fails
    while (report := train.step()).save_error is None:
        assert report.step < 10_000
    assert str(run) in report.save_error
    run.unlink()
    train.save_every(None)
    train.step()
    handles = st.live_handles("checkpoint")
    checkpoint.close()
    assert st.live_handles("checkpoint") == handles - 1


def test_a_trainer_keeps_the_folder_where_it_saves(context, tmp_path):
    checkpoint = st.Checkpoint(context, tmp_path)
    train = steps_of(context, 0)
    train.save_every(checkpoint, 1)
    del checkpoint
    gc.collect()
    train.run(2)
    with pytest.raises(st.Busy):
        st.Checkpoint(context, tmp_path)
    train.save_every(None)
    assert names_of(st.Checkpoint(context, tmp_path))[0] == "step-00000002"
