"""ScaleTrain: train neural networks inside a program.

>>> import scaletrain as st
>>> with st.Context() as context:
...     model = st.Model.builtin(context, "mlp", hidden=[32])
...     trainer = st.Trainer(model, {"batch": 64, "lr": 0.01})
...     report = trainer.step({"x": x, "y": y})  # anything with the buffer protocol or DLPack; nothing is copied

Objects are freed by close(), by the end of a with block, or when nothing refers to them, in any order. A failed call raises a
ScaleTrainError. Each object serves one call at a time; calls from other threads raise Busy unless the method says otherwise.
"""

from . import ops
from .accumulator import Accumulator
from .arrays import Array, Bf16, converted
from .checkpoint import Checkpoint
from .communicator import Communicator, Transport
from .context import Context, HostOp, LogFunction
from .data import Data, FillFunction
from .data_parallel import DataParallel
from .distributed_sampler import DistributedSampler
from .errors import (
    Busy,
    CallbackError,
    Cancelled,
    CheckpointError,
    FileNotFound,
    InternalError,
    InvalidArgument,
    InvalidHandle,
    NotFinite,
    NotFound,
    OutOfMemory,
    RankError,
    ScaleTrainError,
    Timeout,
    Unavailable,
    Unsupported,
    WrongState,
)
from .gemm import Gemm, GemmLayout, PackedMatrix
from .graph import BATCH, Graph, Value
from .library import features, inspect_weights, live_handles, require, version
from .loss_scaler import LossScaler
from .model import Model, gpt2_names
from .optimizer import Optimizer, clip_norm
from .pending import Pending
from .pipeline import Pipeline, Stage, StageWork
from .plan import Plan
from .predictor import Predictor
from .recipe import Recipe
from .recipe_settings import RecipeSettings
from .reports import (
    Evaluation,
    GemmInfo,
    LoadReport,
    MemoryStats,
    MemoryUse,
    OptimizerReport,
    ParameterInfo,
    ReadReport,
    SaveProgress,
    StepReport,
    ValueInfo,
)
from .schedule import Schedule
from .sharded_optimizer import ShardedOptimizer
from .tensor import Tensor
from .trainer import Batch, Trainer

__version__ = version()

__all__ = [
    "Accumulator", "Array", "BATCH", "Batch", "Bf16", "Busy", "CallbackError", "Cancelled", "Checkpoint", "CheckpointError", "Communicator",
    "Context", "Data", "DataParallel", "DistributedSampler", "Evaluation", "FileNotFound", "FillFunction", "Gemm", "GemmInfo", "GemmLayout", "Graph", "HostOp", "InternalError",
    "InvalidArgument", "InvalidHandle", "LoadReport", "LogFunction", "LossScaler", "MemoryStats", "MemoryUse", "Model", "NotFinite",
    "NotFound", "Optimizer", "OptimizerReport", "OutOfMemory", "PackedMatrix", "ParameterInfo", "Pending", "Pipeline", "Plan", "Predictor", "RankError",
    "ReadReport", "Recipe", "RecipeSettings", "SaveProgress", "ScaleTrainError", "Schedule", "ShardedOptimizer", "Stage", "StageWork", "StepReport", "Tensor", "Timeout", "Trainer", "Transport", "Unavailable",
    "Unsupported", "Value", "ValueInfo", "WrongState", "clip_norm", "converted", "features", "gpt2_names", "inspect_weights", "live_handles", "ops", "require", "version",
]  # fmt: skip
