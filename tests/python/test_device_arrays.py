"""Tensors in the memory of a device, on cuda-simulated, whose streams run late."""

from __future__ import annotations

import gc
import re

import numpy
import pytest

import scaletrain as st
from nets import ROWS, mlp, sine

RECIPE = {"batch": ROWS, "lr": 0.01, "warmup": 0, "device": "cuda-simulated:1"}


class OfAnotherLibrary:
    """Its array on a device: the memory of a Tensor. Notes the stream that it is asked for."""

    def __init__(self, tensor: st.Tensor, device: tuple[int, int] = (2, 1)) -> None:
        self.tensor, self.device, self.streams = tensor, device, []

    def __dlpack__(self, *, stream=None, **_):
        self.streams.append(stream)
        return self.tensor.__dlpack__(stream=-1)

    def __dlpack_device__(self):
        return self.device


@pytest.fixture
def device():
    with st.Context(device="cuda-simulated:1", threads=1) as made:
        yield made


def one_parameter(context, shape):
    with st.Graph(context) as graph:
        graph.output("w", graph.parameter("w", shape, init="zeros"))
        return st.Model(graph, seed=1)


def on_device(context, values):
    """A tensor there with these values, by way of a parameter."""
    with one_parameter(context, values.shape) as model:
        model.set("w", values)
        return model.get("w", st.Tensor(context, "f32", values.shape))


def on_host(context, tensor):
    with one_parameter(context, tensor.shape) as model:
        model.set("w", tensor)
        return numpy.asarray(model.get("w"))


def test_a_tensor_is_in_the_devices_memory(device):
    tensor = st.Tensor(device, "f32", (2, 3))
    assert tensor.shape == (2, 3) and tensor.dtype == "f32"
    assert tensor.__dlpack_device__() == (2, 1)
    with pytest.raises(st.Unsupported, match="memory of a device"):
        tensor.memory()
    with pytest.raises(st.Unsupported, match="memory of a device"):
        numpy.asarray(tensor)
    with pytest.raises(BufferError, match=re.escape("(2, 1), not (1, 0)")):
        tensor.__dlpack__(dl_device=(1, 0))
    assert st.Tensor.from_dlpack(device, tensor).shape == (2, 3)


def test_a_tensor_of_a_tensor_keeps_the_devices_memory(device):
    tensor = st.Tensor(device, "f32", (1000,))
    before = device.memory().allocated_bytes
    wrapping = st.Tensor.of(device, tensor)
    tensor.close()
    gc.collect()
    assert wrapping.__dlpack_device__() == (2, 1) and device.memory().allocated_bytes == before
    wrapping.close()
    gc.collect()
    assert device.memory().allocated_bytes < before


def test_calls_that_keep_arrays_refuse_a_tensor_of_the_device_by_its_device(device):
    tensor = st.Tensor(device, "f32", (4,))
    for call in (
        lambda: st.Accumulator(device, 2, [tensor]),
        lambda: st.Data.arrays(device, {"x": tensor}),
        lambda: st.Optimizer(device, {"w": tensor}, optimizer="sgd"),
    ):
        with pytest.raises(st.ScaleTrainError) as caught:
            call()
        assert "from_dlpack" not in str(caught.value) and "device" in str(caught.value)


def test_a_foreign_array_is_asked_for_the_contexts_stream(device):
    tensor = st.Tensor(device, "f32", (4,))
    given = OfAnotherLibrary(tensor)
    assert device.stream == 1
    taken = st.Tensor.from_dlpack(device, given)
    assert taken.__dlpack_device__() == (2, 1)
    device.use_stream(-1)
    st.Tensor.from_dlpack(device, given)
    st.Tensor.from_dlpack(device, given, stream=2)
    assert given.streams == [1, -1, 2]
    with pytest.raises(st.InvalidArgument, match=re.escape("Tensor.from_dlpack(context, array)")):
        st.clip_norm(device, [given], 1)


def test_the_programs_stream_is_a_number_or_knows_it(device):
    class Stream:
        cuda_stream = 0  # as PyTorch's default stream

    device.use_stream(-1)
    assert device.stream == -1
    device.use_stream(Stream())
    assert device.stream == 1
    with pytest.raises(st.InvalidArgument, match="0 is no stream"):
        device.use_stream(0)
    with st.Context(threads=1) as host, pytest.raises(st.Unsupported, match="cpu has no streams"):
        host.use_stream(1)


def test_a_step_and_a_prediction_on_arrays_of_the_device_are_those_on_the_hosts(device):
    batch = sine()
    model = mlp(device)
    by_host, by_device = st.Trainer(model, RECIPE), st.Trainer(mlp(device), RECIPE)
    there = {name: on_device(device, values) for name, values in batch.items()}
    for _ in range(3):
        by_host.step(batch)
        by_device.step(there)
    assert by_host.digest() == by_device.digest()

    predictor = st.Predictor(model)
    wanted = numpy.empty_like(batch["y"])
    predictor.run({"x": batch["x"]}, {"prediction": wanted})
    made = st.Tensor(device, "f32", wanted.shape)
    predictor.run({"x": there["x"]}, {"prediction": made})
    assert (on_host(device, made) == wanted).all()


def test_outputs_of_an_own_loss_and_their_gradients_stay_in_the_devices_memory(device):
    x = sine()["x"]
    by_host, by_device = st.Trainer(mlp(device), RECIPE), st.Trainer(mlp(device), RECIPE)
    wanted = numpy.asarray(by_host.forward({"x": x})["prediction"])
    by_host.backward({"prediction": wanted})
    made = st.Tensor(device, "f32", wanted.shape)
    by_device.forward_into({"x": on_device(device, x)}, {"prediction": made})
    by_device.backward({"prediction": made})
    assert (on_host(device, made) == wanted).all()
    assert by_host.apply().grad_norm == by_device.apply().grad_norm
    assert by_host.digest() == by_device.digest()


def test_an_array_of_another_device_is_refused_with_both_named(device):
    with st.Context(device="cuda-simulated:0", threads=1) as other:
        elsewhere = st.Tensor(other, "f32", (64, 1))
        assert elsewhere.__dlpack_device__() == (2, 0)
        run = st.Trainer(mlp(device), RECIPE)
        with pytest.raises(st.InvalidArgument, match=re.escape("device 1, but the context is on cuda-simulated:1; allowed is 2")):
            run.step({"x": elsewhere, "y": sine()["y"]})
        with pytest.raises(st.Unsupported, match=re.escape("device 0 of type kDLCUDA (2); allowed is that of cuda-simulated:1")):
            st.Tensor.from_dlpack(device, elsewhere)
        elsewhere.close()
