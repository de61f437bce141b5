"""Wrong or hostile calls raise exceptions that name the value and the way out."""

import copy
import gc
import math
import os
import pickle
import re
import sys
import threading

import numpy
import pytest

import scaletrain as st
from nets import FreshDlpack, mlp, on_each, sine, together, trainer


def test_values_of_another_graph_are_refused(context):
    graph, other = st.Graph(context), st.Graph(context)
    x, y = graph.input("x", "f32", (st.BATCH, 3)), other.input("y", "f32", (st.BATCH, 3))
    for call in (lambda: x + y, lambda: graph.op("neg", y), lambda: graph.linear("l", y, 3), lambda: graph.output("o", y),
                 lambda: graph.loss(y), lambda: graph.info(y), lambda: st.ops.add(x, y)):
        with pytest.raises(st.InvalidArgument, match="belongs to another graph"):
            call()


def test_what_is_no_recipe_is_refused(context):
    with pytest.raises(TypeError, match=r"a recipe must be a Recipe, a dict or JSON text, got 5 \(int\)"):
        st.Trainer(mlp(context), 5)


def test_a_value_shows_itself(context, capfd):
    x = st.Graph(context).input("x", "f32", (st.BATCH, 3))
    assert repr(x) == "<scaletrain.Value 1 f32[-1, 3]>"
    gc.collect()
    assert capfd.readouterr().err == ""  # SWIG used to print "swig/python detected a memory leak"


def test_results_that_an_op_has_not_are_refused(context):
    x = st.Graph(context).input("x", "f32", (st.BATCH, 3))
    for count in (0, -1, 2, 10**6, 2**31 - 1, 2**40):
        with pytest.raises(st.InvalidArgument):
            x.graph.op("neg", x, results=count)


def test_numbers_say_which_and_what(context):
    train = trainer(context, st.Data.arrays(context, sine()))
    with pytest.raises(TypeError, match=r"steps must be an integer, got 1.5 \(float\)"):
        train.run(1.5)
    with pytest.raises(st.InvalidArgument, match="steps must be between .* got 9223372036854775808"):
        train.run(2**63)
    with pytest.raises(TypeError, match=r"t must be a number, got 'half' \(str\)"):
        mlp(context).blend(mlp(context), "half")
    with pytest.raises(st.InvalidArgument, match="alpha must fit in a 32-bit float, got 1e[+]300"):
        a = numpy.ones((2, 2), numpy.float32)
        st.Gemm(context, 2, 2, 2).run(a, a, a.copy(), alpha=1e300)
    with pytest.raises(TypeError, match=r"dims must be a sequence of integers, got '12' \(str\)"):
        st.Tensor(context, "f32", "12")
    with pytest.raises(TypeError, match=r"shared must be True or False, got 3 \(int\)"):
        st.Predictor(mlp(context), shared=3)
    assert st.Predictor(mlp(context), shared=numpy.bool_(True))
    for seconds in (math.nan, "soon"):
        with pytest.raises((st.InvalidArgument, TypeError)):
            train.advance(seconds)
    assert train.advance(math.inf).step == 1


def test_a_token_beyond_32_bits_is_no_other_token(context):
    model = st.Model.builtin(context, "gpt", layers=1, width=8, heads=1, context=8, vocabulary=16)
    with pytest.raises(st.InvalidArgument, match=r"prompt\[1\] must be between .* got 4294967297"):
        st.Predictor(model).generate([1, 2**32 + 1], tokens=1)


def test_a_nul_ends_no_text(context, tmp_path):
    for call in (lambda: st.Context(device="cpu\0junk"), lambda: st.Recipe('{"lr": 0.1}\0junk'), lambda: st.live_handles("model\0"),
                 lambda: mlp(context).write_file(f"{tmp_path}/a\0b"), lambda: trainer(context).step({"x\0": numpy.ones(1)}),
                 lambda: st.Graph(context).input("x\0", "f32", (1,))):
        with pytest.raises(st.InvalidArgument, match="must not contain a NUL character"):
            call()
    with pytest.raises(st.InvalidArgument, match=r"valid Unicode, got '\\ud800'"):
        st.Context(device="\ud800")


def test_a_files_name_may_be_any_bytes(context, tmp_path):
    for name in (b"\xff.safetensors", os.fsdecode(b"\xfe.safetensors")):
        path = os.path.join(os.fsencode(tmp_path), os.fsencode(name))
        mlp(context).write_file(path)
        mlp(context).read_file(os.fsdecode(path))
    with pytest.raises(FileNotFoundError) as caught:
        mlp(context).read_file(os.fsdecode(b"/nowhere/\xff"))
    assert caught.value.file == os.fsdecode(b"/nowhere/\xff")


def test_other_objects_than_the_call_takes_are_named(context):
    for call in (lambda: st.Trainer(None, {}), lambda: st.Trainer(context, {}), lambda: st.Model(None), lambda: st.Predictor("m"),
                 lambda: st.Tensor(None, "f32", (1,)), lambda: mlp(context).blend(3, 0.5), lambda: st.Graph(context).loss(3),
                 lambda: st.Trainer(mlp(context), {}, mlp(context)), lambda: st.clip_norm(None, [], 1)):
        with pytest.raises(TypeError, match="a [A-Z][a-z]+ (of the graph )?is required, got "):
            call()
    for noun in (st.Data, st.Pending, st.PackedMatrix):
        with pytest.raises(TypeError, match="created by"):
            noun(None)


def test_arrays_without_names_are_refused(context):
    w = [numpy.zeros(4, dtype=numpy.float32)]
    (alone,) = st.Communicator.local(context, 1)
    for call in (lambda: st.Optimizer(context, w), lambda: st.DataParallel(alone, w), lambda: st.ShardedOptimizer(alone, w),
                 lambda: st.Data.arrays(context, w)):
        with pytest.raises(st.InvalidArgument, match='by name, as a dict {"x": array}, got a list'):
            call()


def test_the_classes_below_take_no_none():
    for method in (st.trainer.native.Trainer.step, st.trainer.native.Model.digest, st.trainer.native.Context.close):
        with pytest.raises(TypeError):
            method(None, *[None] * (method.__code__.co_argcount - 1))


def test_a_subclass_that_makes_nothing_says_so():
    class Mine(st.Trainer):
        def __init__(self):
            pass

    for call in (lambda: Mine().step(), lambda: Mine().close()):
        with pytest.raises(st.InvalidHandle, match="calls super"):
            call()


def test_copies_and_pickles_are_refused(context):
    for noun in (context, mlp(context), st.Recipe(), st.Tensor(context, "f32", (1,))):
        for way in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="cannot be copied or pickled"):
                way(noun)
    with pytest.raises(st.FileNotFound) as caught:
        st.Data.files(context, "/nowhere")
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is st.FileNotFound and (again.file, str(again)) == ("/nowhere", str(caught.value))


def test_numpys_numbers_are_settings(context):
    recipe = st.Recipe(lr=numpy.float32(0.5), batch=numpy.int64(3))
    assert recipe["lr"] == 0.5 and recipe["batch"] == 3
    assert st.Model.builtin(context, "mlp", hidden=numpy.array([8])).parameters[0].shape == (1, 8)
    with pytest.raises(TypeError, match="a setting must be a number"):
        st.Recipe(lr=object())
    for value, said in ((math.nan, "NaN"), (numpy.float32(-math.inf), "-Infinity"), (10**400, str(10**400)), (numpy.True_, "true")):
        for call in (lambda: st.Recipe(lr=value), lambda: recipe.__setitem__("lr", value), lambda: st.Schedule("constant", lr=value)):
            with pytest.raises(st.InvalidArgument, match=re.escape(f": lr must be a number in [0, inf), got {said}")):
                call()
    with pytest.raises(st.InvalidArgument, match=rf"seed must be a whole number in \[0, 2\^63\), got {2**64}"):
        st.Recipe(seed=2**64)


def test_a_strided_tensor_is_seen_as_it_lies(context):
    a = numpy.arange(12, dtype=numpy.float32).reshape(3, 4)
    for array in (a.T, a[:, ::2], numpy.broadcast_to(a[0], (5, 4)), a[1:]):
        tensor = st.Tensor.of(context, array)
        assert (numpy.asarray(tensor) == array).all() and tensor.memory().strides == array.strides
    with pytest.raises(BufferError):
        numpy.frombuffer(st.Tensor.of(context, a.T).memory(), numpy.float32)  # requires memory without gaps


def test_a_tensor_over_read_only_memory_is_read_only(context):
    fixed = b"abc"
    tensor = st.Tensor.of(context, fixed)
    with pytest.raises(TypeError):
        tensor.memory()[0] = 0
    with pytest.raises(BufferError, match="read-only"):
        tensor.__dlpack__()
    assert fixed == b"abc" and not numpy.asarray(tensor).flags.writeable


def test_a_capsule_is_taken_once(context):
    class Once:
        def __init__(self):
            self.capsule = numpy.ones(1000, numpy.float32).__dlpack__()

        def __dlpack__(self, **_):
            return self.capsule

        def __dlpack_device__(self):
            return (1, 0)

    for _ in range(200):
        source, taken = Once(), []

        def take():
            try:
                taken.append(st.Tensor.from_dlpack(context, source))
            except st.InvalidArgument as error:
                assert "taken already" in str(error)

        together(take, take, take)
        assert len(taken) == 1
    with pytest.raises(TypeError, match="has no __dlpack__"):
        st.Tensor.from_dlpack(context, None)


def test_a_batch_that_changes_while_it_is_read_is_read_as_it_was(context):
    batch = {}

    class Changing(FreshDlpack):
        def __dlpack__(self, **_):
            batch.clear()
            gc.collect()
            batch.update({f"k{i}": 1 for i in range(50)})
            return super().__dlpack__()

    batch["".join(["x"])] = Changing(sine()["x"])
    batch["y"] = FreshDlpack(sine()["y"])
    assert trainer(context).step(batch).step == 1


def test_memory_that_was_lent_is_not_in_an_exceptions_frames(context):
    def fill(rows, arrays):
        seen, part = numpy.asarray(arrays[0]), arrays[1][:]
        raise KeyError(len(seen) + len(part))

    train = trainer(context, st.Data.rows_of(context, 64, {"x": ("f32", (1,)), "y": ("f32", (1,))}, fill))
    with pytest.raises(KeyError) as caught:
        train.step()
    inside = caught.traceback[-1].frame.f_locals
    assert "seen" not in inside and "part" not in inside


def test_tasks_that_nobody_waits_for_are_waited_for():
    def parallel(n, task):
        for i in range(n):
            threading.Thread(target=task, args=(i,)).start()

    quiet, threading.excepthook = threading.excepthook, lambda _: None  # a late task raises RuntimeError
    a = numpy.random.default_rng(1).standard_normal((128, 128)).astype(numpy.float32)
    try:
        with st.Context(threads=4, parallel=parallel) as lent:
            gemm = st.Gemm(lent, 128, 128, 128)
            for _ in range(30):
                c = numpy.zeros_like(a)
                gemm.run(a, a, c)
                assert numpy.abs(c - a @ a).max() < 1e-3
    finally:
        threading.excepthook = quiet


def test_functions_that_would_not_run_are_refused(context):
    def generator(*_):
        yield 1

    async def coroutine(*_):
        pass

    train = trainer(context, st.Data.arrays(context, sine()))
    for function in (generator, coroutine):
        with pytest.raises(st.InvalidArgument, match="give a plain function"):
            train.run(100, function)
    done = train.step().step
    train.run(1000, lambda report: numpy.bool_(report.step < done + 2))
    assert train.step().step == done + 3


def test_closing_while_another_thread_copies_is_busy_or_late(context):
    model = st.Model.builtin(context, "mlp", inputs=300, hidden=[8], outputs=2000)
    batch = {"x": numpy.ones((256, 300), numpy.float32), "y": numpy.ones((256, 2000), numpy.float32)}
    parameter = numpy.ones(100_000, numpy.float32)

    def tries(call, times):
        for _ in range(times):
            try:
                call()
            except (st.Busy, st.InvalidHandle, st.WrongState):
                pass

    for _ in range(20):
        train = st.Trainer(model, {"batch": 256})
        optimizer = st.Optimizer(context, {"w": parameter}, optimizer="adamw")
        calls = [(lambda: train.forward(batch), 2), (train.close, 100), (optimizer.close, 100),
                 (lambda: [bytes(memory) for memory in optimizer.state().values()], 20)]  # fmt: skip
        on_each(calls, lambda call: tries(*call))


def test_a_refused_array_is_let_go(context):
    array = bytearray(8)
    for call in (lambda wrong: st.Tensor.of(context, wrong), lambda wrong: st.clip_norm(context, [wrong], 1)):
        with pytest.raises(st.InvalidArgument, match='format "h"'):
            call(memoryview(array).cast("h"))
    gc.collect()
    array.append(1)  # the array is no longer borrowed


def test_no_terminal_and_no_stderr_is_no_bar(context, monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    trainer(context, st.Data.arrays(context, sine())).run(2, progress=True)


def test_a_seed_is_any_integer_and_nothing_else():
    with st.Context(threads=1) as context:
        models = [st.Model.builtin(context, "mlp", seed=seed) for seed in (7, numpy.int64(7), numpy.uint8(7))]
        assert len({model.digest() for model in models}) == 1
        for wrong in (1.5, "1", None):
            with pytest.raises(TypeError, match="seed must be an integer"):
                st.Model.builtin(context, "mlp", seed=wrong)
