"""Results of calls, as named tuples."""

from __future__ import annotations

from typing import Any, NamedTuple


class StepReport(NamedTuple):
    """One optimizer step."""

    skipped: bool  # nothing was updated because the gradient was not finite or too large to be clipped
    step: int  # from 1 on; skipped steps count
    loss: float  # before the step's update
    lr: float
    grad_norm: float  # before clipping
    loss_scale: float
    tokens: int  # since step 1; rows of the loss for a model without tokens
    tokens_per_second: float
    milliseconds: float
    memory_bytes: int
    gradient_noise_scale: float  # NaN if not measured or not known yet
    save_error: str | None  # why a save of Trainer.save_every failed, reported once
    saved_step: int  # step of the newest checkpoint that these saves have written to the disk; -1 if none yet


class Evaluation(NamedTuple):
    loss: float  # mean over the counted rows, with dropout off
    rows: float  # number of counted rows
    metrics: dict[str, float]  # mean of each output named "metric.*"


class OptimizerReport(NamedTuple):
    skipped: bool  # nothing was updated because a gradient was not finite
    step: int  # number of updates so far
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
    limit_bytes: int  # 0 for none
    roles: tuple[MemoryUse, ...]


class ParameterInfo(NamedTuple):
    name: str
    dtype: str
    shape: tuple[int, ...]
    trainable: bool


class ReadReport(NamedTuple):
    read: int
    missing: tuple[str, ...]  # parameters of the model that the source does not have
    unexpected: tuple[str, ...]  # tensors of the source that the model does not have


class LoadReport(NamedTuple):
    step: int  # step of the checkpoint
    name: str  # "step-00000120"
    metadata: dict[str, str]
    read: int  # number of tensors
    missing: tuple[str, ...]  # requested, but not in the checkpoint
    unexpected: tuple[str, ...]  # in the checkpoint, but not requested
    skipped: tuple[str, ...]  # newer checkpoints that are not valid, with the reason
    changed: tuple[str, ...]  # for a trainer: recipe keys that differ, with both values, and an optimizer that starts afresh


class SaveProgress(NamedTuple):
    bytes_done: int  # written of the running save
    bytes_all: int  # total of the running save; 0 if none is running
    waiting: int  # saves in the queue
    saved: int  # since the Checkpoint was created
    failed: int  # since the Checkpoint was created
    saved_step: int  # step of the newest checkpoint on the disk; -1 if there is none
    blocked_seconds: float  # time for which the last save blocked its caller
    write_seconds: float  # time that writing the last save took


class StageWork(NamedTuple):
    """One call of a pipeline's stage. An array is None where there is nothing: the first part has no input, the last one no output, and
    forward no gradients."""

    part: int  # of the model, from 0
    chunk: int  # of this rank, from 0
    micro_batch: int  # of this run, from 0
    input: Any  # forward reads it; so may the others
    output: Any  # forward fills it completely
    output_gradient: Any  # backward_input reads it; so may backward_weight
    input_gradient: Any  # backward_input fills it completely


class ValueInfo(NamedTuple):
    dtype: str
    shape: tuple[int, ...]  # a negative first dimension -n means n times the batch size


class GemmInfo(NamedTuple):
    """The schedule that a plan chose, and the speed of its last run."""

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
