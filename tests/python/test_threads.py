"""Threads: the interpreter keeps running while the library computes, and an object serves one call at a time."""

import threading
import time

import numpy
import pytest

import scaletrain as st
from nets import sine, together, trainer


def test_the_interpreter_goes_on_in_a_long_call(context, tmp_path):
    data = st.Data.arrays(context, sine())
    train = trainer(context, data)
    counted, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            counted[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    a = numpy.ones((512, 512), numpy.float32)
    gemm = st.Gemm(context, 512, 512, 512)
    slow = st.Checkpoint(context, tmp_path, bytes_per_second=4e6)
    try:
        before = counted[0]
        for _ in range(20):
            gemm.run(a, a, numpy.empty_like(a))
            train.evaluate(data)
        assert counted[0] > before
        before = counted[0]
        slow.save(1, {"a": a})  # 0.25 s
        assert counted[0] > before
    finally:
        stop.set()
        thread.join()


def test_an_object_that_is_busy_says_so(context):
    train = trainer(context, st.Data.arrays(context, sine()))
    inside, go_on, outcome = threading.Event(), threading.Event(), []

    def on_step(report):
        inside.set()
        go_on.wait(30)
        return False

    thread = threading.Thread(target=lambda: train.run(10, on_step))
    thread.start()
    assert inside.wait(30)
    for call in (train.step, train.digest, train.close):
        with pytest.raises(st.Busy) as caught:
            call()
        outcome.append(caught.value.status)
    go_on.set()
    thread.join()
    assert outcome == ["busy"] * 3
    assert train.step().step == 2


def test_a_call_from_its_own_callback_is_busy(context):
    train = trainer(context, st.Data.arrays(context, sine()))
    train.set_schedule(lambda k: train.step().lr)
    with pytest.raises(st.Busy):
        train.step()
    train.set_schedule(None)
    train.run(3, lambda report: train.digest())  # a run's own callback may call it


@pytest.mark.parametrize("end, status", [("cancel", ["cancelled"]), ("stop", [])])
def test_cancel_and_stop_end_the_run_of_another_thread(context, end, status):
    train = trainer(context, st.Data.arrays(context, sine()))
    raised = []

    def run():
        try:
            train.run(10**9)
        except st.Cancelled as error:
            raised.append(error.status)

    thread = threading.Thread(target=run)
    thread.start()
    while thread.is_alive():
        getattr(train, end)()
        time.sleep(0.01)
    assert raised == status


def test_predictors_serve_many_threads(context):
    train = trainer(context)
    predictor = st.Predictor(st.Model.builtin(context, "mlp", seed=1, hidden=[8]))
    batch = sine()

    def answer():
        prediction = numpy.zeros((64, 1), numpy.float32)
        predictor.run({"x": batch["x"]}, {"prediction": prediction})
        return prediction.tolist()

    expected = answer()

    def ask():
        assert all(answer() == expected for _ in range(200))

    together(ask, ask, ask, ask, lambda: [train.step(batch) for _ in range(50)])
