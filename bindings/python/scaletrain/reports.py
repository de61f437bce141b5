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
    save_error: str | None  # why a save of Trainer.save_every failed, told once
    saved_step: int  # of the newest checkpoint that such saves brought to the disk; -1: none yet


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


class LoadReport(NamedTuple):
    step: int  # of the checkpoint that was loaded
    name: str  # "step-00000120"
    metadata: dict[str, str]
    read: int  # tensors
    missing: tuple[str, ...]  # asked for, and not in the checkpoint
    unexpected: tuple[str, ...]  # the other way round
    skipped: tuple[str, ...]  # newer checkpoints that are not whole, and why
    changed: tuple[str, ...]  # of a trainer: keys of the recipe that differ, with both values; an optimizer that begins anew


class SaveProgress(NamedTuple):
    bytes_done: int  # of the save that is being written
    bytes_all: int  # 0: none is
    waiting: int  # saves behind it
    saved: int  # since the Checkpoint was made
    failed: int
    saved_step: int  # of the newest that is on the disk; -1: none
    blocked_seconds: float  # that the last save kept its caller
    write_seconds: float  # that the last one took to be written


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
