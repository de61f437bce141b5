"""Python callbacks: their exceptions are reraised unchanged, and arrays that they borrow are released when they return."""

import gc
import io
import logging
import threading

import numpy
import pytest

import scaletrain as st
from nets import ROWS, mlp, on_each, sine, trainer


class Mine(Exception):
    pass


def raising(*_):
    raise Mine("of this test")


def test_on_step_sees_steps_and_ends_the_run(context):
    train = trainer(context, st.Data.arrays(context, sine()))
    seen = []
    train.run(5, lambda report: seen.append(report.step))
    assert seen == [1, 2, 3, 4, 5]
    train.run(100, lambda report: report.step < 8)
    assert train.step().step == 9
    with pytest.raises(Mine, match="of this test") as caught:
        train.run(100, raising)
    assert caught.traceback[-1].name == "raising"
    assert train.step().step == 11
    train.run(13)
    with pytest.raises(st.InvalidArgument, match="on_step must be a function, got a int"):
        train.run(100, 3)


def test_progress_is_a_line_of_a_terminal(context, capsys, monkeypatch):
    from scaletrain.progress import Progress

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    bar = Progress(4, terminal)
    train = trainer(context, st.Data.arrays(context, sine()))
    train.run(4, bar)
    bar.finish()
    assert terminal.getvalue().endswith("\n") and "[############################] 4/4  loss " in terminal.getvalue()
    train.run(6, progress=True)  # not a terminal: nothing is written
    assert capsys.readouterr().err == ""


def test_rows_are_made_when_they_are_wanted(context):
    good = sine()

    def fill(rows, arrays):
        ids = numpy.asarray(rows)
        for name, array in zip(("x", "y"), arrays):
            numpy.asarray(array)[:] = good[name][ids]

    fields = {"x": ("f32", (1,)), "y": ("f32", (1,))}
    made = trainer(context, st.Data.rows_of(context, ROWS, fields, fill))
    given = trainer(context, st.Data.arrays(context, good))
    assert [made.step().loss for _ in range(5)] == [given.step().loss for _ in range(5)]
    failing = trainer(context, st.Data.rows_of(context, ROWS, fields, raising))
    with pytest.raises(Mine):
        failing.step()


def test_an_array_that_is_kept_is_refused(context):
    kept = []

    def fill(rows, arrays):
        for array in arrays:
            numpy.asarray(array)[:] = 0
        kept.append(numpy.asarray(arrays[0]))

    train = trainer(context, st.Data.rows_of(context, ROWS, {"x": ("f32", (1,)), "y": ("f32", (1,))}, fill))
    with pytest.raises(st.InvalidArgument, match="fill: an array borrowed for this call is still in use"):
        train.step()
    train.close()  # waits for rows that the library reads ahead


def test_rates_come_from_the_program(context):
    train = trainer(context, st.Data.arrays(context, sine()))
    train.set_schedule(lambda k: 0.5 / (k + 1))
    assert [train.step().lr for _ in range(3)] == [0.5, 0.25, 0.5 / 3]
    train.set_schedule(raising)
    with pytest.raises(Mine):
        train.step()
    train.set_schedule(lambda k: "fast")
    with pytest.raises(TypeError):
        train.step()
    train.set_schedule(None)
    assert train.step().step == 4


def test_log_records_arrive(context):
    records = []
    with st.Context(threads=1, log=lambda level, area, text: records.append((level, area, text))) as loud:
        trainer(loud).step(sine())
    assert all(level in ("error", "warning", "info", "debug") for level, _, _ in records) and records

    class Kept(logging.Handler):
        def emit(self, record):
            records.append(record.getMessage())

    logger = logging.getLogger("scaletrain.test")
    logger.setLevel(logging.DEBUG)
    logger.addHandler(Kept())
    records.clear()
    with st.Context(threads=1, log=logger) as loud:
        trainer(loud).step(sine())
    assert records


def test_tasks_run_on_threads_of_the_program():
    used = set()

    def parallel(n, task):
        def work(i):
            used.add(threading.get_ident())
            task(i)

        on_each(range(n), work)

    a = numpy.random.default_rng(1).standard_normal((256, 256)).astype(numpy.float32)
    c, d = numpy.zeros_like(a), numpy.zeros_like(a)
    with st.Context(threads=2, parallel=parallel) as lent, st.Context(threads=2) as own:
        st.Gemm(lent, 256, 256, 256).run(a, a, c)
        st.Gemm(own, 256, 256, 256).run(a, a, d)
    assert used and (c == d).all()


class Square:
    """y = x * x; records its calls."""

    def __init__(self):
        self.calls = []

    def shape(self, x):
        return [x]

    def forward(self, inputs, outputs):
        x, y = numpy.asarray(inputs[0]), numpy.asarray(outputs[0])
        assert not x.flags.writeable
        y[:] = x * x
        self.calls.append("forward")

    def backward(self, inputs, outputs, d_outputs, d_inputs):
        if d_inputs[0] is not None:
            numpy.asarray(d_inputs[0])[:] = 2 * numpy.asarray(inputs[0]) * numpy.asarray(d_outputs[0])
        self.calls.append("backward")


def squared_net(context, op=None, name="square"):
    """Uses the library's own op if none is given."""
    if op is not None:
        context.register_op(name, op)
    graph = st.Graph(context)
    x = graph.linear("first", graph.input("x", "f32", (st.BATCH, 1)), 8)
    squared = graph.op(name, x) if op is not None else x * x
    graph.loss(st.ops.mse(graph.linear("second", squared, 1), graph.input("y", "f32", (st.BATCH, 1))))
    return st.Trainer(st.Model(graph, 1), {"batch": ROWS, "warmup": 0})


def test_an_op_of_the_program_trains_as_the_library_own(context):
    op = Square()
    mine, own = squared_net(context, op), squared_net(context)
    losses = [(mine.step(sine()).loss, own.step(sine()).loss) for _ in range(5)]
    assert numpy.allclose(*zip(*losses), rtol=1e-6)
    assert {"forward", "backward"} <= set(op.calls)


@pytest.mark.parametrize("method", ["forward", "backward"])
def test_what_an_op_raises_arrives_as_itself(context, method):
    op = Square()
    train = squared_net(context, op)
    train.step(sine())
    digest = train.digest()
    setattr(op, method, raising)  # bound at registration: later changes have no effect
    other = Square()
    setattr(other, method, raising)
    failing = squared_net(context, other, "failing")
    with pytest.raises(Mine):
        failing.step(sine())
    assert train.digest() == digest


def test_an_op_with_a_wrong_shape_is_refused_where_it_is_used(context):
    op = Square()
    op.shape = raising
    context.register_op("odd", op)
    graph = st.Graph(context)
    with pytest.raises(Mine):
        graph.op("odd", graph.input("x", "f32", (st.BATCH, 1)))


def test_an_op_that_keeps_an_array_is_refused(context):
    op, kept = Square(), []

    def forward(inputs, outputs):
        numpy.asarray(outputs[0])[:] = 0
        kept.append(inputs[0])

    op.forward = forward
    train = squared_net(context, op, "keeping")
    with pytest.raises(st.InvalidArgument, match="forward: an array borrowed for this call"):
        train.step(sine())
    with pytest.raises(ValueError, match="released memoryview"):
        kept[0][0]


def test_weights_go_through_functions_and_files(context, tmp_path):
    model, other = mlp(context, seed=1), mlp(context, seed=2)
    stream = io.BytesIO()
    model.write(stream)
    assert other.read(io.BytesIO(stream.getvalue())).read == len(model.parameters)
    assert other.digest() == model.digest()
    pieces = []
    model.write(pieces.append)
    assert b"".join(pieces) == stream.getvalue()
    name = model.parameters[0].name
    report = other.read(io.BytesIO(stream.getvalue()), partial=True, rename={name: "elsewhere"})
    assert (report.read, report.missing, report.unexpected) == (len(model.parameters) - 1, (name,), (name,))
    with model.write_file_async(tmp_path / "weights.safetensors") as pending:
        pending.result()
        assert pending.done()
    other.read_file(tmp_path / "weights.safetensors")
    with pytest.raises(Mine):
        model.write(raising)
    with pytest.raises(Mine):
        other.read(raising)
    with pytest.raises(st.InvalidArgument, match="must return at most"):
        other.read(lambda room: bytes(room + 1))
    with pytest.raises(TypeError):
        other.read(lambda room: 3)
    with pytest.raises(st.ScaleTrainError):
        other.read(io.BytesIO(stream.getvalue()[:-1]))
    assert other.digest() == model.digest()


def test_tokens_come_one_by_one(context):
    model = st.Model.builtin(context, "gpt", seed=1, layers=1, width=16, heads=1, context=8)
    predictor = st.Predictor(model)
    whole = predictor.generate(b"ab", tokens=6)
    assert len(whole) == 6
    seen = []
    assert predictor.generate([97, 98], tokens=6, on_token=lambda token: seen.append(token) or len(seen) < 3) == whole[:3] == seen
    with pytest.raises(Mine):
        predictor.generate(b"ab", on_token=raising)


def test_callbacks_go_with_what_they_belong_to():
    class Callable:
        def __call__(self, *_):
            return 0.1

    function = Callable()
    gone = []
    import weakref

    weakref.finalize(function, gone.append, 1)
    with st.Context(threads=1) as context:
        train = trainer(context)
        train.set_schedule(function)
        del function
        gc.collect()
        assert not gone
        train.step(sine())
        train.close()
    gc.collect()
    assert gone == [1]
