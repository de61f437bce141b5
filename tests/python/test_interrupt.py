"""Ctrl-C in a long call raises KeyboardInterrupt there, and the objects are as good as before."""

import os
import signal
import threading
import time

import numpy
import pytest

import scaletrain as st

WIDE = 2048


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
    train.step(batch())
    digest = train.digest()
    begin = time.monotonic()
    whole = train.step(batch()).milliseconds / 1000
    digest = train.digest()
    timer = interrupt_in(min(0.1, whole / 4))
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        for _ in range(1000):
            train.step(batch())
    assert time.monotonic() - begin < 30
    timer.join()
    assert train.step(batch()).step >= 3 and train.digest() != digest


def test_a_run_without_callback_ends(context):
    data = st.Data.arrays(context, {"x": numpy.ones((64, 1), numpy.float32), "y": numpy.ones((64, 1), numpy.float32)})
    train = st.Trainer(st.Model.builtin(context, "mlp", hidden=[8]), {"batch": 64}, data)
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


def test_a_wait_for_a_save_ends_and_the_save_goes_on(context, tmp_path):
    checkpoint = st.Checkpoint(context, tmp_path, bytes_per_second=1e6)
    pending = checkpoint.save_async(1, {"x": numpy.ones(150_000, numpy.float32)})  # 0.6 s
    for wait in (checkpoint.wait, pending.result):
        interrupt_in(0.02)
        with pytest.raises(KeyboardInterrupt):
            wait()
    assert not pending.done()
    pending.result()
    assert checkpoint.verify()["problems"] == []


def test_a_handler_of_the_program_is_left_alone(context):
    seen = []
    before = signal.signal(signal.SIGINT, lambda *_: seen.append(1))
    try:
        data = st.Data.arrays(context, {"x": numpy.ones((64, 1), numpy.float32), "y": numpy.ones((64, 1), numpy.float32)})
        train = st.Trainer(st.Model.builtin(context, "mlp", hidden=[8]), {"batch": 64}, data)
        timer = interrupt_in(0.05)
        train.run(20000)
        timer.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [1]


def test_in_another_thread_nothing_is_interrupted(context):
    data = st.Data.arrays(context, {"x": numpy.ones((64, 1), numpy.float32), "y": numpy.ones((64, 1), numpy.float32)})
    train = st.Trainer(st.Model.builtin(context, "mlp", hidden=[8]), {"batch": 64}, data)
    done = []
    thread = threading.Thread(target=lambda: (train.run(20000), done.append(1)))
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)
    thread.join()
    assert done == [1]
