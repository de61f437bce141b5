"""Thousands of objects, steps and callbacks leave nothing behind. ST_LONG_TRIALS=1 runs the full sizes."""

import gc
import sys

import numpy
import pytest

import scaletrain as st
from nets import SANITIZED, FreshDlpack, long_trials, resident_kb, sine, trainer

MEGABYTE = 1024


def flat(work, rounds):
    """Repeats the work and asserts that resident memory does not grow after the first tenth of the rounds."""
    for _ in range(max(1, rounds // 10)):
        work()
    gc.collect()
    before = resident_kb()
    for _ in range(rounds):
        work()
    gc.collect()
    if not SANITIZED:
        assert resident_kb() - before < 2 * MEGABYTE


def test_steps_leave_memory_flat(context):
    train = trainer(context)
    flat(lambda: train.step(sine()), 10_000 if long_trials() else 1_000)
    data = trainer(context, st.Data.arrays(context, sine()))
    flat(lambda: data.run(data.step().step + 5, lambda report: None), 200)


def test_objects_leave_memory_flat_and_no_handle(tmp_path):
    handles = st.live_handles()
    array = numpy.ones((4, 4), numpy.float32)

    def make():
        context = st.Context(threads=1)
        graph = st.Graph(context)
        x = graph.input("x", "f32", (st.BATCH, 4))
        graph.loss(st.ops.mean(graph.linear("y", x, 2)))
        model = st.Model(graph, 1)
        data = st.Data.arrays(context, {"x": array})
        trainer = st.Trainer(model, {"batch": 4}, data)
        made = [st.Tensor.of(context, array), st.Tensor(context, "f32", (3,)), st.Recipe(), st.Schedule(), st.LossScaler(context),
                st.Predictor(model), st.Gemm(context, 4, 4, 4), st.Optimizer(context, {"w": array}, optimizer="sgd"),
                st.Accumulator(context, 2, [array]), st.Checkpoint(context, tmp_path / "run")]  # fmt: skip
        numpy.from_dlpack(made[0])
        trainer.set_schedule(lambda k: 0.1)
        if make.count % 2:
            for one in (*made, trainer, data, model, graph, context):
                one.close()
        make.count += 1

    make.count = 0
    flat(make, 100_000 // 16 if long_trials() else 100_000 // 400)  # 16 objects per round
    gc.collect()
    assert st.live_handles() == handles


def test_an_object_with_its_own_functions_in_it_goes():
    class Program:
        def __init__(self):
            self.context = st.Context(threads=1)
            data = st.Data.rows_of(self.context, 64, {"x": ("f32", (1,)), "y": ("f32", (1,))}, self.fill)
            self.trainer = st.Trainer(st.Model.builtin(self.context, "mlp", hidden=[8]), {"batch": 64}, data.split(0.5)[0])
            self.trainer.set_schedule(self.rate)
            self.trainer.step()

        def fill(self, rows, arrays):
            for array in arrays:
                numpy.asarray(array)[:] = 1

        def rate(self, step):
            return 0.25

    handles = st.live_handles()
    for _ in range(5):
        assert Program().trainer.step().lr == 0.25
    gc.collect()
    assert st.live_handles() == handles


def test_any_order_of_going_is_fine():
    def make():
        context = st.Context(threads=1)
        model = st.Model.builtin(context, "mlp", hidden=[8])
        data = st.Data.arrays(context, sine())
        train = st.Trainer(model, {"batch": 64}, data)
        return [context, model, data, train]

    for order in ((0, 1, 2, 3), (3, 2, 1, 0), (1, 0, 3, 2), (2, 3, 0, 1)):
        objects = make()
        train = objects[3]
        for i in order:
            if objects[i] is not train:
                objects[i].close()
                train.step()
        train.close()


def test_collecting_at_every_moment_breaks_nothing(context):
    threshold = gc.get_threshold()
    gc.set_threshold(1, 1, 1)
    try:
        train = trainer(context, st.Data.arrays(context, {name: values.copy() for name, values in sine().items()}))
        train.run(50, lambda report: [object() for _ in range(20)] and None)
        optimizer = st.Optimizer(context, {"w": numpy.ones(100, numpy.float32)}, optimizer="adamw")
        for _ in range(50):
            optimizer.step([numpy.ones(100, numpy.float32)])
            numpy.from_dlpack(st.Tensor.of(context, numpy.ones(100, numpy.float32))).sum()
    finally:
        gc.set_threshold(*threshold)


@pytest.mark.parametrize("give", [numpy.copy, FreshDlpack])
def test_what_is_given_stays_until_it_has_been_read(context, give):
    """Overwrites memory that is not kept."""
    x = numpy.linspace(-3, 3, 4096, dtype=numpy.float32).reshape(4096, 1)
    kept = {"x": x, "y": numpy.sin(x)}

    def given():
        return {name: give(values) for name, values in kept.items()}

    def litter():
        return [numpy.full_like(x, 7.5) for _ in range(40)]

    whole, pairs, slices = (trainer(context, batch=4096) for _ in range(3))
    drawn, drawing = (trainer(context, st.Data.arrays(context, batch), batch=4096) for batch in (kept, given()))
    for _ in range(5):
        whole.step(kept)
        pairs.forward(kept)  # without effect: the next forward replaces it
        pairs.forward(given())
        litter()
        pairs.backward()
        pairs.apply()
        while slices.advance(0, given()) is None:
            litter()
        assert drawn.step().loss == drawing.step().loss
    assert whole.digest() == pairs.digest() == slices.digest()


def test_what_is_kept_goes_when_it_has_been_read(context):
    train = trainer(context)
    batch = sine()
    counts = {name: sys.getrefcount(values) for name, values in batch.items()}
    for end in (lambda: train.backward(), lambda: train.close()):
        train.forward(batch)
        assert all(sys.getrefcount(values) > counts[name] for name, values in batch.items())
        end()
        assert all(sys.getrefcount(values) == counts[name] for name, values in batch.items())
    train = trainer(context)
    while train.advance(0, batch) is None:
        pass
    assert all(sys.getrefcount(values) == counts[name] for name, values in batch.items())
    try:
        train.advance(0, {"x": batch["x"], "z": batch["y"]})
    except st.ScaleTrainError:
        pass
    assert all(sys.getrefcount(values) == counts[name] for name, values in batch.items())
