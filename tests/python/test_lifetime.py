"""Thousands of objects, steps and callbacks: what is left is nothing. ST_LONG_TRIALS=1 runs the sizes of the issue in full."""

import gc
import subprocess
import sys

import numpy

import scaletrain as st
from nets import SANITIZED, long_trials, resident_kb, sine, trainer

MEGABYTE = 1024


def flat(work, rounds):
    """Runs it, and asserts that resident memory stays where a tenth of the rounds left it."""
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
    flat(make, 100_000 // 16 if long_trials() else 100_000 // 400)  # 16 objects a round
    gc.collect()
    assert st.live_handles() == handles


def test_an_object_with_its_own_functions_in_it_goes():
    class Program:
        def __init__(self):
            self.context = st.Context(threads=1)
            self.data = st.Data.rows_of(self.context, 64, {"x": ("f32", (1,)), "y": ("f32", (1,))}, self.fill)
            self.trainer = st.Trainer(st.Model.builtin(self.context, "mlp", hidden=[8]), {"batch": 64}, self.data.split(0.5)[0])
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


def test_functions_stay_with_what_calls_them():
    context = st.Context(threads=1)

    def fill(rows, arrays):
        numpy.asarray(arrays[0])[:] = 2
        numpy.asarray(arrays[1])[:] = 3

    def made():
        data = st.Data.rows_of(context, 64, {"x": ("f32", (1,)), "y": ("f32", (1,))}, fill)
        train = st.Trainer(st.Model.builtin(context, "mlp", hidden=[8]), {"batch": 32}, data.split(0.5)[0])
        train.set_schedule(lambda step: 0.5)
        return train

    train = made()
    gc.collect()
    for _ in range(10):
        report = train.step()
    assert report.lr == 0.5 and report.loss > 0


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


def test_a_program_may_end_with_everything_open():
    program = """
import numpy, scaletrain as st, sys, threading
context = st.Context(threads=2, log=lambda *_: None)
x = numpy.ones((64, 1), numpy.float32)
def fill(rows, arrays):
    for a in arrays: numpy.asarray(a)[:] = 1
data = st.Data.rows_of(context, 64, {"x": ("f32", (1,)), "y": ("f32", (1,))}, fill)
train = st.Trainer(st.Model.builtin(context, "mlp", hidden=[8]), {"batch": 64}, data)
train.set_schedule(lambda k: 0.1)
train.step()
kept = [st.Data.arrays(context, {"x": x}), st.Tensor.of(context, x), st.Optimizer(context, {"x": x}, optimizer="sgd").state()]
cycle = [train, kept]; cycle.append(cycle)
print("end")
"""
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")


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


class FreshDlpack:
    """Each capsule is of new memory, which the object itself does not keep."""

    def __init__(self, values):
        self.values = values

    def __dlpack__(self, **_):
        return self.values.copy().__dlpack__()

    def __dlpack_device__(self):
        return (1, 0)


ROWS = 4096


def big():
    x = numpy.linspace(-3, 3, ROWS, dtype=numpy.float32).reshape(ROWS, 1)
    return {"x": x, "y": numpy.sin(x)}


def overwritten():
    """Takes over memory that nobody keeps."""
    return [numpy.full((ROWS, 1), numpy.float32(7.5)) for _ in range(40)]


def digest_after(context, work):
    train = trainer(context, batch=ROWS)
    for _ in range(5):
        work(train)
    return train.digest()


def copied():
    return {name: values.copy() for name, values in big().items()}


def fresh():
    return {name: FreshDlpack(values) for name, values in big().items()}


def test_a_batch_stays_until_backward_has_read_it(context):
    def work(batch):
        def steps(train):
            train.forward(batch())
            overwritten()
            train.backward({"prediction": numpy.ones((ROWS, 1), numpy.float32)})
            train.apply()

        return steps

    kept = big()
    wanted = digest_after(context, work(lambda: kept))
    assert digest_after(context, work(copied)) == wanted
    assert digest_after(context, work(fresh)) == wanted


def test_a_batch_stays_until_its_slices_are_a_step(context):
    def work(batch):
        def steps(train):
            while train.advance(0, batch()) is None:
                overwritten()

        return steps

    kept = big()
    wanted = digest_after(context, lambda train: train.step(kept))
    assert digest_after(context, work(lambda: kept)) == wanted
    assert digest_after(context, work(copied)) == wanted
    assert digest_after(context, work(fresh)) == wanted


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
