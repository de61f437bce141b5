"""Arrays are used in place, or refused with the reason."""

import array
import ctypes
import gc
import re

import numpy
import pytest

import scaletrain as st
from nets import ROWS, mlp, sine, trainer
from scaletrain.native import describe as described

F32 = numpy.float32


@pytest.mark.parametrize("code, dtype", [("f", 1), ("d", 2), ("i", 5), ("q", 6), ("l", 6), ("B", 7)])
def test_array_array_is_seen_where_it_lies(code, dtype):
    given = array.array(code, [1, 2, 3])
    assert described(given) == (given.buffer_info()[0], dtype, (3,), (), True)


@pytest.mark.parametrize("name, dtype", [("float32", 1), ("float64", 2), ("float16", 4), ("int32", 5), ("int64", 6), ("uint8", 7), ("bool", 8)])
def test_numpy_is_seen_where_it_lies(name, dtype):
    given = numpy.zeros((2, 3), name)
    assert described(given) == (given.ctypes.data, dtype, (2, 3), (), True)


def test_memoryview_and_ctypes_and_bytearray_are_seen_where_they_lie():
    owner = bytearray(24)
    address = ctypes.addressof(ctypes.c_char.from_buffer(owner))
    assert described(owner)[:3] == (address, 7, (24,))
    assert described(memoryview(owner).cast("f", (2, 3)))[:3] == (address, 1, (2, 3))
    numbers = (ctypes.c_float * 6)()
    assert described(numbers)[:3] == (ctypes.addressof(numbers), 1, (6,))


def test_bytes_are_read_only():
    assert described(b"abc")[4] is False


def test_arrays_are_converted_where_that_is_asked_for():
    x = numpy.array([[1.5, 2.5]])
    made = st.converted(x, "f32")
    assert numpy.asarray(made).dtype == F32 and numpy.asarray(made).tolist() == x.tolist()
    assert numpy.asarray(st.converted(numpy.array([-4, 0, 3])[::2], "i32")).tolist() == [-4, 3]
    assert numpy.asarray(st.converted(x, "bf16").bits).tolist() == [[0x3FC0, 0x4020]]
    assert numpy.asarray(st.converted(st.converted(x, "bf16"), "f64")).tolist() == x.tolist()
    with pytest.raises(st.InvalidArgument, match="element 1 is 4294967296"):
        st.converted(numpy.array([0, 2**32]), "i32")


def test_bf16_is_given_as_bits():
    bits = numpy.zeros((4, 2), numpy.uint16)
    assert described(st.Bf16(bits))[:3] == (bits.ctypes.data, 3, (4, 2))
    with pytest.raises(st.InvalidArgument, match="Bf16 takes the bits as 16-bit unsigned"):
        described(st.Bf16(numpy.zeros(4, F32)))


def test_strides_go_along():
    whole = numpy.zeros((4, 6), F32)
    assert described(whole.T)[2:4] == ((6, 4), (1, 6))
    assert described(whole[:, ::2])[2:4] == ((4, 3), (6, 2))


class OnlyDlpack:
    """Like PyTorch's tensors: DLPack without the buffer protocol."""

    def __init__(self, of, device=(1, 0)):
        self.of, self.device = of, device

    def __dlpack__(self, **_):
        return self.of.__dlpack__()

    def __dlpack_device__(self):
        return self.device


@pytest.mark.parametrize("name, dtype", [("float32", 1), ("float64", 2), ("float16", 4), ("int32", 5), ("int64", 6), ("uint8", 7), ("bool", 8)])
def test_dlpack_is_seen_where_it_lies(name, dtype):
    given = numpy.zeros((3, 2), name)
    assert described(OnlyDlpack(given))[:4] == (given.ctypes.data, dtype, (3, 2), ())
    assert described(OnlyDlpack(given[:, :1]))[:4] == (given.ctypes.data, dtype, (3, 1), (2, 1))


class LazilyNegated(OnlyDlpack):
    """Like torch.tensor([1 + 2j]).conj().imag: the memory holds 2, the tensor's value is -2."""

    def is_neg(self):
        return True


def test_a_sign_that_is_in_no_memory_is_refused(context, tmp_path):
    given = LazilyNegated(numpy.zeros(2, F32))
    for take in (
        lambda: st.Checkpoint(context, tmp_path).save(1, {"w": given}),
        lambda: st.Tensor.from_dlpack(context, given),
        lambda: st.Tensor.of(context, given),
    ):
        with pytest.raises(st.InvalidArgument, match=r"is_neg\(\).*resolve_neg\(\)"):
            take()


DEVICES = {2: "kDLCUDA", 4: "kDLOpenCL", 7: "kDLVulkan", 8: "kDLMetal", 9: "kDLVPI", 10: "kDLROCM", 11: "kDLROCMHost", 12: "kDLExtDev",
           13: "kDLCUDAManaged", 14: "kDLOneAPI", 15: "kDLWebGPU", 16: "kDLHexagon", 17: "kDLMAIA", 18: "kDLTrn"}  # fmt: skip


@pytest.mark.parametrize("kind", [-1, 0, *range(2), *range(2, 20), 2**40])
def test_dlpack_is_taken_of_the_hosts_memory_alone(context, kind):
    values = numpy.zeros(3, F32)
    given = OnlyDlpack(values, (kind, 0))
    if kind in (1, 3):  # kDLCPU, and kDLCUDAHost, which is pinned
        assert described(given)[0] == values.ctypes.data
        return
    named = f"{DEVICES[kind]} ({kind})" if kind in DEVICES else f"{kind}, which has no name here"
    with pytest.raises(st.InvalidArgument, match=re.escape(f"DLPack device {named}; allowed is the host's memory, kDLCPU (1)")) as caught:
        described(given)
    assert "copy it to the host" in str(caught.value)
    with pytest.raises(st.InvalidArgument, match=re.escape(named)):
        st.clip_norm(context, [given], 1)


def test_a_tensor_is_made_of_the_hosts_memory_alone(context):
    from ctypes import POINTER, c_int32, c_void_p, cast, py_object, pythonapi

    pythonapi.PyCapsule_GetPointer.restype = c_void_p
    tensor = st.Tensor(context, "f32", (4,))
    assert tensor.__dlpack_device__() == (1, 0)
    capsule = tensor.__dlpack__()
    managed = cast(pythonapi.PyCapsule_GetPointer(py_object(capsule), b"dltensor"), POINTER(c_int32))
    assert managed[2:4] == [1, 0]  # device_type, device_id
    given = OnlyDlpack(None)
    given.__class__ = type("Given", (OnlyDlpack,), {"__dlpack__": lambda self, **_: capsule})
    managed[2] = 13
    with pytest.raises(st.Unsupported, match=r"kDLCUDAManaged \(13\); allowed is the host's memory"):
        st.Tensor.from_dlpack(context, given)
    with pytest.raises(st.InvalidArgument, match=r"kDLCUDAManaged \(13\)"):
        described(given)  # which says that it is on the CPU
    managed[2] = 3
    assert st.Tensor.from_dlpack(context, given).shape == (4,)


@pytest.mark.parametrize(
    "given, said",
    [
        (numpy.zeros(3, ">f4"), "format \">f\" has the other byte order"),
        (numpy.zeros(3, "complex64"), "format \"Zf\" is not supported; supported are f f32"),
        (numpy.zeros(3, "int16"), "format \"h\" is not supported"),
        (numpy.zeros(3, F32)[::-1], "must not be negative"),
        (numpy.zeros((1,) * 9, F32), "at most 8 dimensions, got 9"),
        ([1.0, 2.0], "got a list"),
        (None, "got a NoneType"),
        (3, "got a int"),
    ],
)
def test_what_is_no_array_of_ours_is_refused(given, said):
    with pytest.raises(st.InvalidArgument, match=re.escape(said)) as caught:
        described(given)
    assert isinstance(caught.value, ValueError)


def test_a_batch_names_the_array_that_is_wrong(context):
    step = trainer(context).step
    good = sine()
    with pytest.raises(st.InvalidArgument, match='"y"'):
        step({**good, "y": good["y"].astype(float)})
    with pytest.raises(st.InvalidArgument, match='"y"'):
        step({**good, "y": good["y"][:-1]})
    with pytest.raises(st.InvalidArgument, match='input "y" is missing'):
        step({"x": good["x"], "z": good["y"]})
    with pytest.raises(st.InvalidArgument, match="keys of the dict must be str, got a int"):
        step({1: good["x"]})
    with pytest.raises(st.InvalidArgument, match="by name, as a dict"):
        step([good["x"]])
    step(good)


def test_ways_out_name_what_this_language_has(context):
    with pytest.raises(st.WrongState, match=r"call Trainer\.forward and Trainer\.backward first$"):
        trainer(context).apply()
    batch = sine()
    batch["x"] = batch["x"].astype("f8")
    with pytest.raises(st.InvalidArgument, match=r'"x" must be f32, the batch gives f64; convert it first \(st\.converted\)'):
        trainer(context).step(batch)


def test_read_only_arrays_are_read_and_not_written(context):
    good = sine()
    for values in good.values():
        values.setflags(write=False)
    train = trainer(context)
    train.step(good)
    model = mlp(context)
    target = numpy.zeros((1, 8), F32)
    target.setflags(write=False)
    name = model.parameters[0].name
    with pytest.raises(st.InvalidArgument, match="is read-only"):
        model.get(name, target)
    with pytest.raises(st.InvalidArgument, match="is read-only"):
        st.Predictor(model).run({"x": good["x"]}, {"prediction": bytes(4 * ROWS)})
    with pytest.raises(st.InvalidArgument, match="is read-only"):
        st.Optimizer(context, {"w": target}, optimizer="sgd")
    with pytest.raises(st.InvalidArgument, match="is read-only"):
        st.clip_norm(context, [target], 1)


def test_what_is_borrowed_cannot_be_resized_or_freed(context):
    w = bytearray(64)
    optimizer = st.Optimizer(context, {"w": memoryview(w).cast("f")}, optimizer="sgd")
    with pytest.raises(BufferError):
        w.append(1)
    optimizer.close()
    w.append(1)

    gradients = [numpy.ones(1 << 16, F32) for _ in range(4)]
    accumulator = st.Accumulator(context, 2, gradients)
    addresses = [g.ctypes.data for g in gradients]
    del gradients
    for _ in range(20):
        gc.collect()
        litter = [numpy.full(1 << 16, numpy.nan, F32) for _ in range(4)]  # would reuse the memory of freed arrays
        assert not {one.ctypes.data for one in litter} & set(addresses)
        del litter
    accumulator.add(1)
    accumulator.add(1)


def test_forward_gives_copies_of_the_program_own(context):
    train = trainer(context)
    outputs = train.forward({"x": sine()["x"]})
    prediction = numpy.asarray(outputs["prediction"])
    assert prediction.shape == (ROWS, 1) and prediction.dtype == F32
    before = prediction.copy()
    train.backward({"prediction": numpy.ones((ROWS, 1), F32)})
    train.apply()
    train.close()
    assert (prediction == before).all()


def test_forward_into_writes_the_callers_arrays(context):
    train, x = trainer(context), sine()["x"]
    wanted = numpy.asarray(train.forward({"x": x})["prediction"])
    found = numpy.empty((ROWS, 1), F32)
    train.forward_into({"x": x}, {"prediction": found})
    assert (found == wanted).all()


def test_a_tensor_is_seen_without_a_copy_and_outlives_its_owner(context):
    tensor = st.Tensor(context, "f32", (2, 3))
    seen = numpy.asarray(tensor)
    seen[:] = 7
    assert tensor.shape == (2, 3) and tensor.dtype == "f32"
    assert tensor.memory().tolist() == [[7, 7, 7], [7, 7, 7]]
    address = seen.ctypes.data
    assert address % 64 == 0
    assert numpy.asarray(tensor.memory()).ctypes.data == address
    assert numpy.from_dlpack(tensor).ctypes.data == address
    tensor.close()
    context.close()
    gc.collect()
    seen[1, 2] = 8
    assert seen.sum() == 43
    with pytest.raises(st.InvalidHandle):
        tensor.memory()


def test_a_tensor_over_an_array_keeps_it(context):
    mine = numpy.arange(6, dtype=F32).reshape(2, 3)
    address = mine.ctypes.data
    tensor = st.Tensor.of(context, mine)
    del mine
    gc.collect()
    seen = numpy.from_dlpack(tensor)
    assert seen.ctypes.data == address and seen.tolist() == [[0, 1, 2], [3, 4, 5]]
    tensor.close()
    assert seen[1, 2] == 5


def test_a_tensor_of_dlpack_takes_it_over(context):
    mine = numpy.arange(4, dtype=numpy.int64)
    tensor = st.Tensor.from_dlpack(context, mine)
    assert numpy.asarray(tensor).ctypes.data == mine.ctypes.data and tensor.dtype == "i64"
    with pytest.raises(BufferError):
        tensor.__dlpack__(copy=True)


def test_a_capsule_that_nobody_takes_gives_its_memory_back(context):
    tensor = st.Tensor(context, "f32", (1000,))
    before = context.memory().allocated_bytes
    capsule = tensor.__dlpack__()
    tensor.close()
    assert context.memory().allocated_bytes == before
    del capsule
    gc.collect()
    assert context.memory().allocated_bytes < before


@pytest.mark.parametrize("part", ["Optimizer", "Accumulator"])
def test_a_state_is_the_parts_own_memory_and_keeps_it_open(context, part):
    w = numpy.ones(4, F32)
    address = w.ctypes.data
    if part == "Optimizer":
        made, key = st.Optimizer(context, {"w": w}, optimizer="adamw"), "moment1.w"
        made.step([numpy.ones(4, F32)])
        assert w.ctypes.data == address and (w < 1).all()
    else:
        made, key = st.Accumulator(context, 2, [w]), "sum.0"
        made.add(3)
    state = made.state()
    assert numpy.asarray(state[key]).all()
    with pytest.raises(st.WrongState, match=f"{part}.close: its state .* is still in use"):
        made.close()
    del state
    gc.collect()
    made.close()
    with pytest.raises(st.InvalidHandle):
        made.state()


def test_products_over_transposed_arrays(context):
    rng = numpy.random.default_rng(1)
    a, b = rng.standard_normal((5, 7)).astype(F32), rng.standard_normal((3, 7)).astype(F32)
    c = numpy.full((5, 3), numpy.nan, F32)
    gemm = st.Gemm(context, 5, 3, 7, b=st.GemmLayout(row=1, column=7))
    gemm.run(a, b.T, c)
    assert numpy.allclose(c, a @ b.T, atol=1e-5)
    bias, residual, sums = rng.standard_normal(3).astype(F32), c.copy(), numpy.zeros(3, F32)
    gemm.run(a, gemm.pack(b.T), c, bias=bias, activation="relu", residual=residual, column_sums=sums)
    expected = numpy.maximum(a @ b.T + bias, 0) + residual
    assert numpy.allclose(c, expected, atol=1e-5) and numpy.allclose(sums, expected.sum(axis=0), atol=1e-4)
    with pytest.raises(st.InvalidArgument, match="activation must be one of none, relu.* got 'tanh'"):
        gemm.run(a, b.T, c, activation="tanh")
