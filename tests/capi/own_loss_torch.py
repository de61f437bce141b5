"""A loss in PyTorch: st_trainer_forward's output goes to torch through DLPack, torch's gradient comes back through DLPack to
st_trainer_backward, and st_trainer_apply ends the step; nothing is copied. Without torch, NumPy computes the loss, so the exchange is
the same; without both, the test is skipped (77) with a message.

usage: own_loss_torch.py LIBRARY [PYTHON]    PYTHON: an interpreter that may have torch; SCALETRAIN_PYTHON names another
"""
import importlib.util
import os
import subprocess
import sys
from ctypes import CFUNCTYPE, POINTER, byref, c_char_p, c_double, c_int32, c_int64, c_size_t, c_uint32, c_void_p, Structure

from library_calls import F32, Library, NamedView, View, exported, imported, live_handles, view_of

ROWS, STEPS = 64, 60  # a power of two, so that multiplying by a mean's 1/rows is exact on either side
RECIPE = b'{"batch": 64, "lr": 0.01, "warmup": 0}'
MODEL = b'{"inputs": 1, "hidden": [32], "outputs": 1}'
ReleaseFn = CFUNCTYPE(None, c_void_p)


class StepReport(Structure):
    _fields_ = [("struct_size", c_uint32), ("skipped", c_int32), ("step", c_int64), ("loss", c_double), ("lr", c_double),
                ("grad_norm", c_double), ("loss_scale", c_double), ("tokens", c_int64), ("tokens_per_second", c_double),
                ("milliseconds", c_double), ("memory_bytes", c_int64),
                ("gradient_noise_scale", c_double)]


class TorchLoss:
    """Mean squared error by torch.autograd."""

    def __init__(self):
        import torch
        self.torch, self.name = torch, f"torch {torch.__version__}"

    def rows(self):
        x = self.torch.linspace(-3, 3, ROWS).reshape(ROWS, 1)
        return x, self.torch.sin(x)

    def address(self, array):
        return array.data_ptr()

    def __call__(self, output, wanted):
        prediction = self.torch.from_dlpack(output).requires_grad_()
        loss = self.torch.nn.functional.mse_loss(prediction, wanted)
        loss.backward()
        return loss.item(), prediction.grad, prediction.data_ptr()


class NumpyLoss:
    """The same by hand."""

    def __init__(self):
        import numpy
        self.numpy, self.name = numpy, f"numpy {numpy.__version__}"

    def rows(self):
        x = self.numpy.linspace(-3, 3, ROWS, dtype=self.numpy.float32).reshape(ROWS, 1)
        return x, self.numpy.sin(x)

    def address(self, array):
        return array.ctypes.data

    def __call__(self, output, wanted):
        prediction = self.numpy.from_dlpack(output)
        error = prediction - wanted
        return float((error * error).mean()), error * self.numpy.float32(2 / ROWS), prediction.ctypes.data


class Run:
    """A small net and its trainer; the rows are the array library's memory."""

    def __init__(self, st, loss):
        self.st, self.loss = st, loss
        self.context, self.model, self.recipe, self.trainer = c_void_p(), c_void_p(), c_void_p(), c_void_p()
        st.st_context_create(None, byref(self.context))
        st.st_model_builtin(self.context, b"mlp", MODEL, c_int64(1), byref(self.model))
        st.st_recipe_create(RECIPE, byref(self.recipe))
        st.st_trainer_create(self.model, self.recipe, None, byref(self.trainer))
        self.x, self.y = loss.rows()
        self.dims = (c_int64 * 2)(ROWS, 1)
        self.released = 0
        self.on_release = ReleaseFn(self.count_release)

    def count_release(self, _):
        self.released += 1

    def named(self, name, address):
        return NamedView(name, View(F32, 2, self.dims, None, address, 4 * ROWS))

    def own_step(self):
        """The graph's mse."""
        batch = (NamedView * 2)(self.named(b"x", self.loss.address(self.x)), self.named(b"y", self.loss.address(self.y)))
        report = StepReport()
        self.st.st_step_report_init(byref(report), c_size_t(StepReport.gradient_noise_scale.offset + 8))
        self.st.st_trainer_step(self.trainer, c_int64(2), batch, byref(report))
        return report.loss

    def lent_output(self):
        """forward's one output, borrowed from the trainer: a tensor over its memory, and that memory's address."""
        batch = (NamedView * 1)(self.named(b"x", self.loss.address(self.x)))
        count, outputs, tensor = c_int64(), POINTER(NamedView)(), c_void_p()
        self.st.st_trainer_forward(self.trainer, c_int64(1), batch, byref(count), byref(outputs))
        assert count.value == 1 and outputs[0].name == b"prediction", "the outputs of mlp"
        self.st.st_tensor_wrap(self.context, byref(outputs[0].view), self.on_release, None, byref(tensor))
        return tensor, outputs[0].view.data

    def host_step(self):
        """The same step, with the loss from torch or NumPy."""
        output, address = self.lent_output()
        value, gradient, seen_at = self.loss(exported(self.st, output), self.y)
        assert seen_at == address, "the output was copied on its way to the loss"
        before = self.released
        self.st.st_tensor_destroy(output)
        assert self.released == before + 1, "the array of a computed loss was not released"

        back = imported(self.st, self.context, gradient)
        view = view_of(self.st, back)
        assert view.data == self.loss.address(gradient), "the gradient was copied on its way back"
        by = (NamedView * 1)(NamedView(b"prediction", view))
        self.st.st_trainer_backward(self.trainer, c_int64(1), by)
        self.st.st_tensor_destroy(back)
        self.st.st_trainer_apply(self.trainer, None)
        return value

    def digest(self):
        digits = c_char_p()
        self.st.st_trainer_digest(self.trainer, byref(digits))
        return digits.value

    def close(self):
        for destroy, handle in [("trainer", self.trainer), ("recipe", self.recipe), ("model", self.model), ("context", self.context)]:
            getattr(self.st, f"st_{destroy}_destroy")(handle)


def trained(st, loss):
    host, own = Run(st, loss), Run(st, loss)
    losses = []
    for step in range(STEPS):
        mine, theirs = host.host_step(), own.own_step()
        assert abs(mine - theirs) <= 1e-6 * max(1.0, theirs), f"step {step}: the host's loss is {mine}, the graph's {theirs}"
        assert host.digest() == own.digest(), f"step {step}: the host's gradient gave different weights"
        losses.append(mine)
    assert losses[-1] < 0.1 * losses[0], f"it does not learn: {losses[0]} to {losses[-1]}"
    for run in (host, own):
        run.close()
    assert host.released == STEPS and live_handles(st) == 0
    return losses


def has_torch(python):
    asked = "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"
    return os.access(python, os.X_OK) and subprocess.run([python, "-c", asked], check=False).returncode == 0


def main(library, python=""):
    python = os.environ.get("SCALETRAIN_PYTHON", python)
    here = importlib.util.find_spec("torch") is not None
    if not here and has_torch(python):
        os.execv(python, [python, __file__, library])
    if not here and importlib.util.find_spec("numpy") is None:
        print(f"skipped: neither this python3 nor {python or 'another'} has torch, and this one has no numpy")
        sys.exit(77)
    loss = TorchLoss() if here else NumpyLoss()
    losses = trained(Library(library), loss)
    print(f"{STEPS} steps with a loss from {loss.name}: {losses[0]:.4f} to {losses[-1]:.4f}, bitwise equal to the graph's own mse")


main(*sys.argv[1:])
