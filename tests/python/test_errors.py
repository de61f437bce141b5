"""Each error has its class, the library's complete text, and the known details."""

import numpy
import pytest

import scaletrain as st
from nets import long_trials, mlp, resident_kb, sine, trainer


def test_classes_are_the_built_in_ones_too():
    for kind, built_in in [(st.InvalidArgument, ValueError), (st.OutOfMemory, MemoryError), (st.CheckpointError, OSError),
                           (st.RankError, st.ScaleTrainError), (st.Timeout, TimeoutError), (st.NotFound, LookupError)]:
        assert issubclass(kind, built_in) and issubclass(kind, st.ScaleTrainError)


def test_an_unknown_key_names_the_nearest():
    with pytest.raises(st.InvalidArgument, match="learning_rate|lr") as caught:
        st.Recipe(lr_warm=3)
    assert caught.value.status == "invalid_argument" and caught.value.rank == -1 and caught.value.file == ""


def test_a_missing_file_is_an_os_error_with_its_name(context):
    with pytest.raises(FileNotFoundError) as caught:
        st.Data.files(context, "/nowhere/text.txt", context=8)
    assert isinstance(caught.value, st.NotFound) and caught.value.file == "/nowhere/text.txt"
    assert "/nowhere/text.txt" in str(caught.value)


def test_an_op_and_a_tensor_are_named(context):
    graph = st.Graph(context)
    x = graph.input("x", "f32", (st.BATCH, 3))
    w = graph.parameter("w", (4, 5))
    with pytest.raises(st.InvalidArgument) as caught:
        x @ w
    assert caught.value.op == "matmul"
    with pytest.raises(st.ScaleTrainError) as caught:
        mlp(context).get("nothing")
    assert caught.value.tensor == "nothing"


def test_memory_limit_is_a_memory_error():
    context = st.Context(memory_limit=1 << 20)
    with pytest.raises(MemoryError) as caught:
        st.Tensor(context, "f32", (1 << 20,))
    assert isinstance(caught.value, st.OutOfMemory) and "4194304" in str(caught.value).replace(",", "")


def test_nan_in_a_batch_is_not_finite(context):
    batch = sine()
    batch["x"][3] = numpy.nan
    with pytest.raises(st.NotFinite):
        trainer(context).step(batch)


def test_every_object_says_what_it_is(context):
    model = mlp(context)
    train = st.Trainer(model, {"batch": 4, "lr": 0.5})
    assert repr(model) == f"<scaletrain.Model of {len(model.parameters)} parameters>"
    assert repr(train) == f"<scaletrain.Trainer of {model!r}>"
    assert repr(st.Recipe(lr=0.5)) == '<scaletrain.Recipe {"lr": 0.5}>'
    assert repr(context) == "<scaletrain.Context>"
    train.close()
    assert repr(train) == "<scaletrain.Trainer closed>"


def test_closed_objects_say_so(context):
    train = trainer(context)
    train.close()
    train.close()
    with pytest.raises(st.InvalidHandle) as caught:
        train.step(sine())
    assert caught.value.status == "invalid_handle"
    assert str(caught.value).startswith("trainer: this object is closed")
    model = mlp(context)
    with model:
        pass
    with pytest.raises(st.InvalidHandle):
        st.Predictor(model)
    graph = st.Graph(context)
    x = graph.input("x", "f32", (st.BATCH, 3))
    graph.close()
    for wrong in (lambda: x + x, lambda: x + 1, lambda: graph.output("y", x), lambda: st.Model(graph)):
        with pytest.raises(st.InvalidHandle):
            wrong()


def test_wrong_types_are_type_errors_or_say_what_is_wrong(context):
    with pytest.raises(TypeError):
        st.Model.builtin(context, 3)
    with pytest.raises((TypeError, st.InvalidArgument)):
        st.Graph(context).input("x", "f32", ("a",))
    with pytest.raises(st.InvalidArgument, match="dtype must be one of f32.* got 'f31'"):
        st.Graph(context).input("x", "f31", (1,))
    with pytest.raises(TypeError, match="LossScaler has no option 'scale'"):
        st.LossScaler(context, scale=3)
    with pytest.raises(st.InvalidArgument, match="init must be one of zeros, ones.* got 'he'"):
        st.Graph(context).parameter("w", (1,), init="he")


def test_a_thousand_errors_leave_memory_flat(context):
    def wrong():
        with pytest.raises(st.InvalidArgument):
            st.Recipe(lr=-1)

    for _ in range(100):
        wrong()
    before = resident_kb()
    for _ in range(10000 if long_trials() else 1000):
        wrong()
    assert resident_kb() - before < 1024


def test_the_library_tells_itself():
    assert st.version() == st.__version__ and st.features()["version"] == st.version()
    major, minor = map(int, st.version().split(".")[:2])
    st.require(major, minor)
    with pytest.raises(st.Unsupported):
        st.require(major + 1, 0)
