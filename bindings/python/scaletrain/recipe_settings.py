"""The keys of a recipe, for type checkers.

Generated from runtime/train/recipe.def by bindings/recipe_keys.py: edit the row, not this file.
"""

from typing import Any, Literal, Mapping, Sequence, TypedDict


class RecipeSettings(TypedDict, total=False):
    """The keys that a dict for a Recipe may have. A missing key has its default."""

    device: str
    # Where to compute: cpu is fast, reference is slow and double-accumulating. Allowed: cpu reference. Default: "cpu".
    precision: str
    # Of matrix products and activations while training; bf16 and fp16: summed in fp32, over fp32 master weights, gradients and moments;
    # fp16 scales the loss; predictions and evaluations are fp32. Allowed: fp32 bf16 fp16. Default: "fp32".
    fp32_scopes: str
    # Bf16 and fp16: scopes that compute in fp32 all the same, by patterns (block.0.*,head); a scope within such a one does too.
    # Allowed: none SCOPES. Default: "none".
    loss_scale: float
    # Fp16: what the loss is multiplied with before backward; 0: dynamic, as the next keys say. Allowed: [0,inf). Default: 0.0.
    loss_scale_initial: float
    # The first dynamic loss scale. Allowed: (0,inf). Default: 65536.0.
    loss_scale_growth_factor: float
    # What the dynamic loss scale is multiplied with after growth_interval steps without a skipped one. Allowed: (1,inf). Default: 2.0.
    loss_scale_backoff_factor: float
    # What the dynamic loss scale is multiplied with after a skipped step. Allowed: (0,1). Default: 0.5.
    loss_scale_growth_interval: int
    # Steps without a skipped one after which the dynamic loss scale grows. Allowed: [1,inf). Default: 2000.
    loss_scale_hysteresis: int
    # Skipped steps that the dynamic loss scale bears before it falls, and falls with each one on; it bears as many again when it has
    # grown. Allowed: [1,inf). Default: 1.
    loss_scale_consecutive_hysteresis: bool
    # It bears as many again after each step that was not skipped. Default: false.
    loss_scale_minimum: float
    # The dynamic loss scale falls no lower. Allowed: (0,inf). Default: 1.0.
    batch: int | Literal["auto"]
    # Sequences per rank and micro-batch; auto: the largest that fits in memory and divides global_batch. Allowed: [1,inf) auto.
    # Default: 8.
    global_batch: int
    # Sequences per step in all; 0: batch times micro-batches. With it accumulate follows from the batch. Allowed: [0,1000000]. Default:
    # 0.
    accumulate: int
    # Micro-batches per rank and optimizer step. Allowed: [1,inf). Default: 1.
    micro_batches: int
    # Micro-batches per step in all; the other way to say accumulate (0: that says it). Allowed: [0,inf). Default: 0.
    ranks: int
    # Data ranks, which share a step's micro-batches: threads of this process, each with what zero leaves it of the model. Allowed:
    # [1,256]. Default: 1.
    reduce: str
    # What ranks exchange: each micro-batch's gradients, so that the bits do not depend on ranks, or each rank's sums once a step, less
    # on the wire. Allowed: micro step. Default: "micro".
    zero: int
    # ZeRO (Rajbhandari et al. 2020), what ranks have only pieces of, the same bits: 0 nothing, 1 the optimizer's state, 2 gradients
    # too, 3 parameters too, which each scope gathers for itself. With one rank it is nothing. Allowed: [0,3]. Default: 0.
    offload: str
    # What lies outside the device's memory, the same bits: the optimizer's state, or the fp32 parameters too; in host memory, which is
    # where a device cpu has them anyway, or in offload_folder. Parameters stay there until the model is freed. Allowed: none optimizer
    # parameters. Default: "none".
    offload_folder: str
    # Offload: a folder of a local disk, in which files without a name have it all, reserved up front and gone with the process; counted
    # as file, not as memory. Empty: host memory. Default: "".
    bucket: int
    # Bytes of gradients that ranks exchange together; changes speed, no bit. Allowed: [1,inf). Default: 26214400.
    overlap: str
    # Exchange gradients, and with zero 3 parameters, while a rank computes, on a thread beside its own; changes speed, no bit. Allowed:
    # on off. Default: "on".
    replica_check: int
    # Compare the weights of all ranks before each so many steps, and end with the rank and the tensor that differ; 0 is off, and ranks
    # that are processes do it before their first step alone. Allowed: [0,inf). Default: 0.
    threads: int
    # Per rank; 0: this process's cores / ranks. Allowed: [0,4096]. Default: 0.
    optimizer: str
    # What updates the parameters; keys below that are not given take its own defaults (PyTorch's, Lion the paper's). Allowed: adamw
    # adam adamw-8bit sgd adafactor lion rmsprop adagrad muon. Default: "adamw".
    lr: float
    # Learning rate after the warm-up. Allowed: [0,inf). Default: 0.001.
    lr_schedule: str
    # Learning rate as a function of successful steps. Allowed: constant linear cosine polynomial inverse_sqrt wsd one_cycle table.
    # Default: "constant".
    warmup: int
    # Steps over which the learning rate rises: f(k) = lr * min(1, (k+1) / warmup). Allowed: [0,inf). Default: 20.
    lr_steps: int
    # Length of linear, cosine, polynomial, wsd and one_cycle in successful steps, warm-up included; 0: unset, and the command line
    # takes --steps. Allowed: [0,inf). Default: 0.
    lr_min: float
    # What linear, cosine, polynomial, inverse_sqrt and wsd fall to. Allowed: [0,inf). Default: 0.0.
    lr_power: float
    # Polynomial: lr_min + (lr - lr_min) * (1 - share of the steps)^lr_power. Allowed: (0,inf). Default: 1.0.
    lr_cycles: int
    # Cosine: so many falls, each from lr again. Allowed: [1,1000000]. Default: 1.
    lr_cycle_growth: int
    # Cosine: each cycle is so many times as long as the one before. Allowed: [1,1000]. Default: 1.
    lr_decay_steps: int
    # Wsd: length of the decay at the end of lr_steps; 0: unset. Allowed: [0,inf). Default: 0.
    lr_decay: str
    # Wsd: shape of the decay. Allowed: linear cosine 1-sqrt. Default: "linear".
    lr_pct_start: float
    # One_cycle: share of the steps over which it rises. Allowed: (0,1). Default: 0.3.
    lr_div_factor: float
    # One_cycle begins at lr / lr_div_factor. Allowed: (0,inf). Default: 25.0.
    lr_final_div_factor: float
    # One_cycle ends at its begin / lr_final_div_factor. Allowed: (0,inf). Default: 10000.0.
    lr_table: str
    # Table: "0:1e-3 100:5e-4", the learning rate from each number of successful steps on, without interpolation. Default: "".
    beta1: float
    # Decay of the first moment. Allowed: [0,1). Default: 0.9.
    beta2: float
    # Decay of the second moment; rmsprop's alpha. Allowed: [0,1). Default: 0.999.
    epsilon: float
    # Added to the square root of the second moment; adafactor: the least second moment's root, 0: the machine epsilon. Allowed:
    # [0,inf). Default: 1e-08.
    weight_decay: float
    # Decoupled weight decay; added to the gradient by adam, sgd, rmsprop and adagrad. Allowed: [0,inf). Default: 0.01.
    momentum: float
    # Of sgd, rmsprop and muon. Allowed: [0,1). Default: 0.0.
    dampening: float
    # Of sgd's momentum. Allowed: [0,1]. Default: 0.0.
    nesterov: bool
    # Nesterov's momentum, of sgd and muon. Default: false.
    centered: bool
    # Rmsprop: divides by the gradient's deviation. Default: false.
    rate_decay: float
    # Adagrad: the rate of update t from 1 is lr / (1 + (t - 1) rate_decay). Allowed: [0,inf). Default: 0.0.
    initial_accumulator_value: float
    # Adagrad: what its sums of squares begin with. Allowed: [0,inf). Default: 0.0.
    beta2_decay: float
    # Adafactor: beta2 of update t from 1 is 1 - t^beta2_decay. Allowed: [-100,0]. Default: -0.8.
    epsilon2: float
    # Adafactor: the least size of a parameter that scales its step. Allowed: [0,inf). Default: 0.001.
    clip_threshold: float
    # Adafactor: largest root mean square of an update, its d. Allowed: [1,inf). Default: 1.0.
    ns_steps: int
    # Muon: steps of Newton-Schulz. Allowed: [0,99]. Default: 5.
    adjust_lr: str
    # Muon: the rate times sqrt(max(1, rows / columns)), or 0.2 sqrt(max(rows, columns)). Allowed: original match_rms_adamw. Default:
    # "original".
    groups: Sequence[Mapping[str, Any]]
    # Parameters by name, a list: [{"pattern": "*.bias", "lr_scale": 1, "weight_decay_scale": 0, "clip": 1, "frozen": false,
    # "optimizer": "adamw"}]; the first pattern that fits counts, * is any text. Default: [].
    clip: float
    # Largest global norm of the gradient; 0 is off. Allowed: [0,inf). Default: 1.0.
    clip_value: float
    # Largest magnitude of an element of the gradient, after clip; 0 is off. Allowed: [0,inf). Default: 0.0.
    ema_decay: float
    # Keeps an exponential moving average of the trained weights beside them: after each successful step average = ema_decay * average +
    # (1 - ema_decay) * weight, the first one copies (torch's AveragedModel with get_ema_multi_avg_fn); 0 is off. Allowed: [0,1).
    # Default: 0.0.
    dropout: float
    # Share of activations set to zero while training, at sites that name no rate of their own. Allowed: [0,1). Default: 0.0.
    label_smoothing: float
    # Share of each target that goes evenly to all classes while training (torch's CrossEntropyLoss); the loss that is shown is the one
    # that is trained, evaluations are without. Allowed: [0,1]. Default: 0.0.
    z_loss: float
    # Adds z_loss * (log sum e^logits)^2 to each target's loss while training, so that logits stay near zero; PaLM (2022) took 1e-4.
    # Allowed: [0,inf). Default: 0.0.
    recompute: str
    # Activations that backward makes again instead of keeping them, the same bits: of the blocks, of attention, of all outermost
    # scopes, of what fits recompute_budget with the least arithmetic, or of the scopes that patterns match (block.*.mlp,head). Allowed:
    # none blocks attention full auto SCOPES. Default: "none".
    recompute_budget: int
    # Bytes of activations that recompute auto is to fit; 0: what the memory limit leaves beside the rest. Allowed: [0,inf). Default: 0.
    early_stopping_patience: int
    # The command line ends a run after so many evaluations in a row whose validation loss was no improvement; 0 is off, and a host that
    # evaluates by itself stops by itself. Allowed: [0,inf). Default: 0.
    early_stopping_min_delta: float
    # What the validation loss must fall by, below the best one so far, to be an improvement: by more than this. Allowed: [0,inf).
    # Default: 0.0.
    gradient_noise_scale: bool
    # Measure the gradient noise scale (McCandlish et al. 2018), the batch in sequences above which larger ones stop paying, from the
    # first micro-batch's gradient and the whole step's; needs 2 micro-batches a step or more, and reads each gradient once more.
    # Default: false.
    find_nan: bool
    # A step whose loss or gradients are not finite is run again in a checking mode and ends as an error that names the op, scope,
    # tensor, index, micro-batch and rank where it began; an overflow that a dynamic loss scale can still answer is skipped as ever.
    # Default: false.
    trim_every: int
    # Successful steps after which what only makes later calls quicker is given back, as st_context_trim does, each time; 0 is never.
    # Allowed: [0,inf). Default: 0.
    tune: bool
    # Measure the tiles of the products before the first step; changes speed, no bit. Default: false.
    gemm_library: str
    # What multiplies: own, or auto: of a step's fp32 products each by the fastest of own kernels, OpenBLAS, MKL and oneDNN, where they
    # are, measured before the first step; a library changes the bits. Allowed: own auto. Default: "own".
    seed: int
    # Of initialisation, data order and dropout. Allowed: [0,inf). Default: 0.
