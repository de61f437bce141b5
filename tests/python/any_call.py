"""Calls the whole package in random order with random arguments: any_call.py SEED SECONDS

What may come of a call is its result or an exception; test_any_call.py looks at how the process ends, and at what is left.
"""

from __future__ import annotations

import array
import gc
import inspect
import io
import math
import random
import sys
import threading
import time
from typing import Any

import numpy

import scaletrain as st

NOUNS = [st.Accumulator, st.Checkpoint, st.Context, st.Data, st.Gemm, st.Graph, st.LossScaler, st.Model, st.Optimizer, st.PackedMatrix, st.Pending,
         st.Plan, st.Predictor, st.Recipe, st.Schedule, st.Tensor, st.Trainer, st.Value]  # fmt: skip
FUNCTIONS = [st.clip_norm, st.features, st.live_handles, st.require, st.version, *(f for f in vars(st.ops).values() if inspect.isfunction(f))]
FREE = {"run": 3, "generate": 3}  # a large number would take forever
SPECIAL = ("__getitem__", "__setitem__", "__call__", "__dlpack__", "__add__", "__matmul__", "__truediv__", "__neg__", "__repr__")


class Square:
    """A custom op, which may fail."""

    def __init__(self, choose: random.Random) -> None:
        self.choose = choose

    def shape(self, x: Any) -> Any:
        return self.choose.choice([[x], [x], [x], [], None, [("f32", (2,))]])

    def forward(self, inputs: Any, outputs: Any) -> None:
        if self.choose.random() < 0.2:
            raise KeyError("forward")
        numpy.asarray(outputs[0])[...] = numpy.asarray(inputs[0])


class Player:
    def __init__(self, seed: int) -> None:
        self.choose = random.Random(seed)
        self.things: list[Any] = []

    def start(self) -> None:
        """Adds objects that fit together, so that calls get past their first checks."""
        context = st.Context(threads=self.choose.choice([1, 2]), memory_limit=self.choose.choice([0, 10_000, 1 << 20, 1 << 24]))
        x = numpy.linspace(-3, 3, 64, dtype=numpy.float32).reshape(64, 1)
        self.things += [context, {"x": x, "y": numpy.sin(x)}]
        model = st.Model.builtin(context, "mlp", hidden=[8])
        graph = st.Graph(context)
        data = st.Data.arrays(context, {"x": x, "y": x})
        self.things += [model, data, graph, graph.input("x", "f32", (st.BATCH, 3)), graph.parameter("w", (3, 4)), st.Recipe(batch=64),
                        st.Trainer(model, {"batch": 64}, data), st.Trainer(model.clone(), {"batch": 64}), st.Predictor(model),
                        st.Tensor.of(context, x), st.Optimizer(context, {"w": x.copy()}), st.Gemm(context, 4, 4, 4), Square(self.choose),
                        st.Plan(model, {"batch": 64}, machine="h200"),
                        st.Model.builtin(context, "gpt", layers=1, width=8, heads=1, context=8, vocabulary=16),
                        st.Checkpoint(context, self.choose.choice(["run", "x"]))]  # fmt: skip

    def number(self) -> Any:
        return self.choose.choice([0, 1, 2, 3, 4, 8, 64, -1, -2, 1.0, 0.5, 1e-3, math.nan, math.inf, -math.inf, 1e308, True, False,
                                   2**31 - 1, 2**31, 2**32 + 1, 2**62, 2**63, -(2**63), 10**30, numpy.int64(3), numpy.float32(0.5)])  # fmt: skip

    def text(self) -> Any:
        return self.choose.choice(["x", "y", "w", "layer.0.weight", "lr", "batch", "mlp", "gpt", "f32", "bf16", "i32", "add", "neg", "softmax",
                                   "", "\0", "x\0y", "\ud800", "é", "a" * 5000, "{", "[" * 300, "no/where", b"\xff", b"x",
                                   "trainer", "adamw", "cosine", "cpu", "reference"])  # fmt: skip

    def an_array(self) -> Any:
        shape = self.choose.choice([(), (0,), (3,), (64, 1), (4, 4), (3, 0, 2), (1,) * 9, (2, 3, 4)])
        made = numpy.ones(shape, self.choose.choice(["f4", "f4", "f4", "f8", "f2", "i4", "i8", "u1", "?", ">f4", "c8", "S3", "O", "M8[s]", "u2"]))
        if self.choose.random() < 0.3:
            made = made.T if self.choose.random() < 0.5 else made[..., ::-1] if made.ndim else made
        if self.choose.random() < 0.2:
            made.flags.writeable = False
        return self.choose.choice([made, made, made, st.Bf16(made), array.array("f", [1, 2]), bytearray(8), memoryview(b"abcd")])

    def by_name(self) -> Any:
        return {self.choose.choice(["x", "y", "w"]): self.an_array() for _ in range(self.choose.randrange(3))}

    def function(self) -> Any:
        def anything(*_: Any) -> Any:
            if self.choose.random() < 0.2:
                self.play()
            return self.choose.choice([None, True, False, 1, 0.5, "text", b"bytes", b""])

        def fails(*_: Any) -> Any:
            raise self.choose.choice([KeyError, ValueError, SystemExit, KeyboardInterrupt, st.Busy])("mine")

        def generates(*_: Any) -> Any:
            yield 1

        return self.choose.choice([anything, anything, fails, generates, print, io.BytesIO(b"abc" * 100), io.StringIO()])

    def value(self, depth: int = 0) -> Any:
        kind = self.choose.random()
        if kind < 0.45 and self.things:
            return self.choose.choice(self.things)
        if kind < 0.6:
            return self.number()
        if kind < 0.7:
            return self.text()
        if kind < 0.8:
            return self.an_array()
        if kind < 0.86:
            return self.function()
        if kind < 0.9 or depth > 2:
            return self.choose.choice([None, object(), NotImplemented, ..., st, st.Trainer])
        if kind < 0.95:
            return self.choose.choice([tuple, list])(self.value(depth + 1) for _ in range(self.choose.randrange(4)))
        return {self.choose.choice([self.text(), self.number()]): self.value(depth + 1) for _ in range(self.choose.randrange(3))}

    def argument(self, parameter: inspect.Parameter, name: str) -> Any:
        """An argument, usually of the expected type."""
        if parameter.name == "self":
            raise AssertionError("bound already")
        if name in FREE and parameter.name in ("steps", "tokens"):
            return self.choose.choice([-1, 0, 1, 3, 5, None, "x"])
        wanted = str(parameter.annotation)
        if parameter.name == "bytes_per_second":  # a slow save would make the test wait
            return self.choose.choice([0, 1e9, -1, math.nan, math.inf, "x"])
        if "HostOp" in wanted:  # the collector does not see what a context holds, so an op that refers to its context would never be freed
            return self.choose.choice([Square(self.choose), None, 3])
        fitting = [thing for thing in self.things if type(thing).__name__ in wanted]
        if fitting and self.choose.random() < 0.75:
            return self.choose.choice(fitting)
        if self.choose.random() < 0.3:
            return self.value()
        for word, make in (("Mapping[str, Array]", self.by_name), ("Array", self.an_array), ("Callable", self.function), ("Batch", self.value), ("str", self.text),
                           ("int", self.number), ("float", self.number)):  # fmt: skip
            if word in wanted:
                return make()
        return self.value()

    def target(self) -> Any:
        if self.choose.random() < 0.15:
            return self.choose.choice(FUNCTIONS)
        noun = self.choose.choice(NOUNS)
        alive = [thing for thing in self.things if type(thing) is noun]
        if alive and self.choose.random() < 0.8:
            names = [name for name in dir(noun) if (not name.startswith("_") or name in SPECIAL) and name != "calibrate"]  # which takes 40 s
            return getattr(self.choose.choice(alive), self.choose.choice(names))
        static = [name for name, member in vars(noun).items() if isinstance(member, staticmethod) and not name.startswith("_")]
        return getattr(noun, self.choose.choice(static)) if static and self.choose.random() < 0.5 else noun

    def play(self) -> None:
        try:
            call = self.target()
            if not callable(call):
                return  # a property
            given, named = [], {}
            for parameter in inspect.signature(call).parameters.values():
                if parameter.default is not parameter.empty and self.choose.random() < 0.6:
                    continue
                if parameter.kind is parameter.VAR_POSITIONAL:
                    given += [self.argument(parameter, call.__name__) for _ in range(self.choose.randrange(3))]
                elif parameter.kind is parameter.VAR_KEYWORD:
                    named.update({self.choose.choice(["lr", "hidden", "axis", "shape", "wrong"]): self.value() for _ in range(self.choose.randrange(2))})
                elif parameter.kind is parameter.KEYWORD_ONLY:
                    named[parameter.name] = self.argument(parameter, call.__name__)
                else:
                    given.append(self.argument(parameter, call.__name__))
            made = call(*given, **named)
            if type(made) in NOUNS or isinstance(made, memoryview):
                self.things.append(made)
            elif isinstance(made, tuple) and type(made) is tuple:
                self.things += made
        except (Exception, KeyboardInterrupt, SystemExit):
            pass
        finally:
            while len(self.things) > 60:
                self.things.pop(self.choose.randrange(len(self.things)))


def main(seed: int, seconds: float) -> None:
    end = time.monotonic() + seconds
    calls = 0
    while time.monotonic() < end:
        player = Player(seed * 1000 + calls)
        try:
            player.start()
        except st.ScaleTrainError:
            pass  # expected with a small memory_limit
        threads = [threading.Thread(target=lambda: [player.play() for _ in range(100)]) for _ in range(player.choose.choice([0, 0, 1]))]
        for thread in threads:
            thread.start()
        for _ in range(300):
            player.play()
            calls += 1
        for thread in threads:
            thread.join()
        player.things.clear()  # functions that the library holds refer to the player, a cycle that the collector cannot see
    del player
    gc.collect()
    print(calls, "calls", st.live_handles(), "handles")


if __name__ == "__main__":
    sys.stdout, out = io.StringIO(), sys.stdout
    sys.stderr, err = io.StringIO(), sys.stderr
    main(int(sys.argv[1]), float(sys.argv[2]))
    out.write(sys.stdout.getvalue().splitlines()[-1] + "\n")
    sys.stdout, sys.stderr = out, err
