"""What calls tell: named tuples."""

from __future__ import annotations

from typing import NamedTuple


class StepReport(NamedTuple):
    """One optimizer step."""

    skipped: bool  # the gradient was not finite and nothing was updated
    step: int
    loss: float  # before the step's update
    lr: float
    grad_norm: float  # before clipping
    loss_scale: float
    tokens: int
    tokens_per_second: float
    milliseconds: float
    memory_bytes: int
    gradient_noise_scale: float  # NaN: not measured, or not known yet


class Evaluation(NamedTuple):
    loss: float  # mean over the counted rows, dropout off
    rows: float  # that were counted
    metrics: dict[str, float]  # of each output named "metric.*": its mean


class OptimizerReport(NamedTuple):
    skipped: bool  # a gradient was not finite: nothing has changed
    step: int  # updates so far
    lr: float
    norm: float


class MemoryUse(NamedTuple):
    role: str  # "parameters", "gradients", ...
    bytes: int
    peak_bytes: int


class MemoryStats(NamedTuple):
    allocated_bytes: int
    available_bytes: int
    resident_bytes: int
    peak_bytes: int
    limit_bytes: int  # 0: none
    roles: tuple[MemoryUse, ...]


class ParameterInfo(NamedTuple):
    name: str
    dtype: str
    shape: tuple[int, ...]
    trainable: bool


class ReadReport(NamedTuple):
    read: int
    missing: tuple[str, ...]  # in the model, not in what was read
    unexpected: tuple[str, ...]  # the other way round


class ValueInfo(NamedTuple):
    dtype: str
    shape: tuple[int, ...]  # a first dimension below 0 is that many times the batch


class GemmInfo(NamedTuple):
    """What a plan chose, and how fast its last run was."""

    adjusted: bool
    tile: tuple[int, int, int]  # m, n, k
    block: tuple[int, int]  # m, n
    micro: tuple[int, int]  # m, n
    order: str
    packing: str
    threads: int
    instruction_set: str
    scratch_bytes: int
    packed_bytes: int
    flops_per_second: float
    predicted_flops_per_second: float
    source: str
    library: str
