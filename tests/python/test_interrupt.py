"""Ctrl-C in a long call raises KeyboardInterrupt in it, and the objects stay usable."""

import os
import signal
import threading
import time

import numpy
import pytest

import scaletrain as st
from nets import sine, trainer

WIDE = 1024


def interrupt_in(seconds):
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    return timer


def long_model(context):
    return st.Model.builtin(context, "mlp", seed=1, inputs=WIDE, hidden=[WIDE, WIDE, WIDE], outputs=WIDE)


def batch():
    x = numpy.ones((WIDE, WIDE), numpy.float32)
    return {"x": x, "y": x}


def test_a_step_ends(context):
    train = st.Trainer(long_model(context), {"batch": WIDE})
    whole = train.step(batch()).milliseconds / 1000
    digest = train.digest()
    timer = interrupt_in(min(0.1, whole / 4))
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        for _ in range(1000):
            train.step(batch())
    assert time.monotonic() - begin < 30
    timer.join()
    assert train.step(batch()).step >= 2 and train.digest() != digest


def test_a_run_without_callback_ends(context):
    train = trainer(context, st.Data.arrays(context, sine()))
    interrupt_in(0.2)
    with pytest.raises(KeyboardInterrupt):
        train.run(10**9)
    assert train.step().step > 1


def test_an_evaluation_ends(context):
    rows = numpy.zeros((1 << 22, 1), numpy.float32)
    data = st.Data.arrays(context, {"x": rows, "y": rows})
    train = st.Trainer(st.Model.builtin(context, "mlp", hidden=[64, 64]), {"batch": 8}, data)
    interrupt_in(0.1)
    with pytest.raises(KeyboardInterrupt):
        for _ in range(1000):
            train.evaluate(data)
    train.step()


def test_a_save_that_is_waited_for_ends_and_leaves_nothing(context, tmp_path):
    checkpoint = st.Checkpoint(context, tmp_path / "run", bytes_per_second=1e6)
    checkpoint.save(1, {"x": numpy.ones(1000, numpy.float32)})
    train = st.Trainer(long_model(context), {"batch": 8})
    many = {"x": numpy.ones(4_000_000, numpy.float32)}  # 16 s
    for save in (lambda: checkpoint.save(2, many), lambda: train.save(checkpoint)):
        interrupt_in(0.1)
        begin = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            save()
        assert time.monotonic() - begin < 8
        assert [entry["name"] for entry in checkpoint.list()] == ["step-00000001"]
        assert not list((tmp_path / "run").glob("*.part"))
    checkpoint.save(2, {"x": numpy.ones(1000, numpy.float32)})
    whole = st.Checkpoint(context, tmp_path / "whole")
    whole.save(1, many)
    slow = st.Checkpoint(context, tmp_path / "whole" / "step-00000001", read_only=True, bytes_per_second=1e6)
    interrupt_in(0.1)
    with pytest.raises(KeyboardInterrupt):
        slow.reshard(tmp_path / "parts", 2)
    assert not (tmp_path / "parts").exists()


def interrupt_as_it_begins(call):
    """Sends the signal on another thread, which gets the interpreter's lock when the call releases it. Returns the seconds until the exception."""

    def send():
        begins.wait()
        os.kill(os.getpid(), signal.SIGINT)

    begins = threading.Event()
    thread = threading.Thread(target=send)
    thread.start()
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        begins.set()
        call()
        thread.join()
    seconds = time.monotonic() - begin
    thread.join()
    return seconds


def ends_before_its_effect(call, undo, has_effect):
    """Retries if the signal comes after the call has ended, as may happen on a busy machine."""
    for _ in range(200):
        undo()
        interrupt_as_it_begins(call)
        if not has_effect():
            return True
    return False


def ends_early(call):
    """The same for a call that changes nothing; checks only its time."""

    def seconds():
        begin = time.monotonic()
        call()
        return time.monotonic() - begin

    whole = min(seconds() for _ in range(5))
    return any(interrupt_as_it_begins(call) < 0.8 * whole for _ in range(200))


def test_what_reads_a_checkpoint_ends(context, tmp_path):
    checkpoint = st.Checkpoint(context, tmp_path / "run")
    values, file = numpy.ones(16_000_000, numpy.float32), tmp_path / "x.safetensors"
    checkpoint.save(1, {"x": values})
    assert ends_early(checkpoint.verify)
    assert ends_early(checkpoint.hash)

    assert ends_before_its_effect(lambda: checkpoint.load({"x": values}), lambda: values.fill(2), lambda: (values == 1).any())
    assert ends_before_its_effect(lambda: checkpoint.export(file), lambda: file.unlink(missing_ok=True), file.exists)
    checkpoint.load({"x": values})
    assert (values == 1).all()


def test_a_resume_ends_and_changes_nothing(context, tmp_path):
    checkpoint = st.Checkpoint(context, tmp_path)
    model = long_model(context)
    train = st.Trainer(model, {"batch": 8})
    train.save(checkpoint)
    bias = next(parameter.name for parameter in model.parameters if len(parameter.shape) == 1)
    other = numpy.full(WIDE, 0.5, numpy.float32)
    for call in (lambda: train.resume(checkpoint), lambda: model.load(checkpoint)):
        model.set(bias, other)
        before = train.digest()
        assert ends_before_its_effect(call, lambda: model.set(bias, other), lambda: train.digest() != before)
        call()
        assert train.digest() != before


def test_a_meeting_of_processes_ends(context):
    job = f"test_interrupt-{os.getpid()}"
    assert interrupt_as_it_begins(lambda: st.Communicator.processes(context, job, 0, 2, start=60)) < 30


def test_a_wait_for_a_save_ends_and_the_save_goes_on(context, tmp_path):
    checkpoint = st.Checkpoint(context, tmp_path, bytes_per_second=1e6)

    def waits_end_before_the_save(step):
        pending = checkpoint.save_async(step, {"x": numpy.ones(100_000, numpy.float32)})  # 0.4 s
        for wait in (checkpoint.wait, pending.result):
            interrupt_as_it_begins(wait)
        ended_early = not pending.done()
        pending.result()
        return ended_early

    assert any(waits_end_before_the_save(step) for step in range(1, 10))
    assert checkpoint.verify()["problems"] == []


def test_a_handler_of_the_program_is_left_alone(context):
    seen = []
    before = signal.signal(signal.SIGINT, lambda *_: seen.append(1))
    try:
        timer = interrupt_in(0.05)
        trainer(context, st.Data.arrays(context, sine())).run(20000)
        timer.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [1]


def test_in_another_thread_nothing_is_interrupted(context):
    train = trainer(context, st.Data.arrays(context, sine()))
    done = []
    thread = threading.Thread(target=lambda: (train.run(20000), done.append(1)))
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)
    thread.join()
    assert done == [1]
