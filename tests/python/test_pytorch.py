"""PyTorch's tensors, if PyTorch is installed (tests/setup --peers): used in place, in every dtype; and a loss that PyTorch computes."""

import gc

import numpy
import pytest

import scaletrain as st
from nets import ROWS, mlp, sine
from scaletrain import native

try:
    import torch
except ImportError:
    torch = None
pytestmark = pytest.mark.skipif(torch is None, reason="PyTorch is not here; tests/setup --peers installs it")


@pytest.mark.parametrize("name, dtype", [("float32", 1), ("float64", 2), ("bfloat16", 3), ("float16", 4), ("int32", 5), ("int64", 6), ("uint8", 7), ("bool", 8)])
def test_a_tensor_is_seen_where_it_lies(name, dtype):
    given = torch.zeros((3, 2), dtype=getattr(torch, name))
    assert native.describe(given)[:4] == (given.data_ptr(), dtype, (3, 2), ())
    assert native.describe(given.T)[:4] == (given.data_ptr(), dtype, (2, 3), (1, 2))


def test_a_tensor_that_wants_a_gradient_is_refused_with_the_way_out(context):
    with pytest.raises((st.ScaleTrainError, BufferError, RuntimeError), match="(?i)grad|detach"):
        st.Tensor.of(context, torch.zeros(3, requires_grad=True))


def test_the_librarys_memory_is_a_tensor(context):
    made = st.Tensor(context, "f32", (2, 3))
    seen = torch.from_dlpack(made)
    made.close()
    gc.collect()
    seen += 1
    assert seen.sum() == 6
    assert native.describe(seen)[0] == seen.data_ptr()


def test_an_optimizer_steps_pytorchs_parameters_in_place(context):
    ours = [torch.randn(5, 3), torch.randn(7)]
    theirs = [torch.nn.Parameter(tensor.clone()) for tensor in ours]
    optimizer = st.Optimizer(context, {str(i): tensor for i, tensor in enumerate(ours)}, optimizer="adamw", lr=0.01, weight_decay=0.01)
    peer = torch.optim.AdamW(theirs, lr=0.01, weight_decay=0.01)
    for _ in range(10):
        gradients = [torch.randn_like(tensor) for tensor in ours]
        optimizer.step(gradients)
        for parameter, gradient in zip(theirs, gradients):
            parameter.grad = gradient
        peer.step()
    for mine, parameter in zip(ours, theirs):
        assert torch.allclose(mine, parameter, atol=1e-6)


def test_pytorch_computes_the_loss(context):
    """forward, PyTorch's loss and gradient, backward and apply give the same weights as the model's own mean squared error."""
    batch = sine()
    recipe = {"batch": ROWS, "lr": 0.01, "warmup": 0, "clip": 0}
    models = [mlp(context), mlp(context)]
    own, hosts = (st.Trainer(model, recipe) for model in models)
    target = torch.from_numpy(batch["y"])
    for _ in range(20):
        report = own.step(batch)
        prediction = torch.from_numpy(numpy.asarray(hosts.forward(batch)["prediction"])).requires_grad_()
        assert prediction.shape == (ROWS, 1)
        loss = torch.nn.functional.mse_loss(prediction, target)
        loss.backward()
        hosts.backward({"prediction": prediction.grad})
        hosts.apply()
        assert loss.item() == pytest.approx(report.loss, rel=1e-4)
    for parameter in models[0].parameters:
        first, second = (numpy.asarray(model.get(parameter.name)) for model in models)
        assert numpy.allclose(first, second, atol=1e-4)
