"""The keys of a recipe, for type checkers.

Generated from runtime/recipe/recipe.def by bindings/recipe_keys.py: edit the row, not this file.
"""

from typing import Any, Literal, Mapping, Sequence, TypedDict


class RecipeSettings(TypedDict, total=False):
    """The keys that a dict for a Recipe may have. A missing key has its default."""

    device: str
    # Where to compute: auto, on the device of the model's context, for the command line cpu; cpu is fast; reference is slow and
    # accumulates in double; NAME or NAME:INDEX is the device of a plug-in, which `scaletrain info` lists. Allowed: auto cpu cuda
    # reference NAME NAME:INDEX. Default: "auto".
    precision: str
    # Element type of matrix products and activations in training; bf16 and fp16 sum in fp32 and keep fp32 master weights, gradients and
    # moments; fp16 scales the loss; prediction and evaluation run in fp32. Allowed: fp32 bf16 fp16. Default: "fp32".
    fp32_scopes: str
    # Bf16 and fp16: scopes that still compute in fp32, nested scopes included, as patterns (block.0.*,head). Allowed: none SCOPES.
    # Default: "none".
    residual_dtype: str
    # Element type of the residual stream in training: of what embeddings give, blocks add to and norms take and give, and of its
    # gradients; fp32, or that of precision, which halves the activations kept for recomputed blocks and the messages between stages;
    # norms still sum, and keep their weights, in fp32. Allowed: fp32 bf16 fp16. Default: "fp32".
    loss_scale: float
    # Fp16: factor on the loss before backward; 0: dynamic, set by the loss_scale_ keys. Allowed: [0,inf). Default: 0.0.
    loss_scale_initial: float
    # The first dynamic loss scale. Allowed: (0,inf). Default: 65536.0.
    loss_scale_growth_factor: float
    # Factor on the dynamic loss scale after loss_scale_growth_interval steps in a row without a skipped one. Allowed: (1,inf). Default:
    # 2.0.
    loss_scale_backoff_factor: float
    # Factor on the dynamic loss scale after a skipped step. Allowed: (0,1). Default: 0.5.
    loss_scale_growth_interval: int
    # Steps in a row without a skipped one before the dynamic loss scale grows. Allowed: [1,inf). Default: 2000.
    loss_scale_hysteresis: int
    # Number of the skipped step from which the dynamic loss scale backs off; the count restarts when the scale grows. Allowed: [1,inf).
    # Default: 1.
    loss_scale_consecutive_hysteresis: bool
    # Restart the count of loss_scale_hysteresis after every step that was not skipped. Default: false.
    loss_scale_minimum: float
    # Lower limit of the dynamic loss scale. Allowed: (0,inf). Default: 1.0.
    batch: int | Literal["auto"]
    # Sequences per rank and micro-batch; auto: the largest that fits in memory and divides global_batch. Allowed: [1,inf) auto.
    # Default: 8.
    global_batch: int
    # Sequences per step over all ranks; if set, accumulate follows from it and batch; 0: batch times micro-batches. Allowed:
    # [0,1000000]. Default: 0.
    accumulate: int
    # Micro-batches per rank and optimizer step. Allowed: [1,inf). Default: 1.
    micro_batches: int
    # Micro-batches per step over all ranks, an alternative to accumulate; 0: follows from accumulate. Allowed: [0,inf). Default: 0.
    ranks: int
    # Ranks of all kinds: stages times data-parallel ranks, which share the micro-batches of a step, times the tensor degree; without a
    # communicator they run as threads of this process, at most 256; 1: as many as stages times the tensor degree. Allowed: [1,1000000].
    # Default: 1.
    stages: int
    # Pipeline stages: each has some of the model's outermost scopes, and micro-batches pass through them; results are bitwise equal.
    # Allowed: [1,256]. Default: 1.
    tensor: int
    # Tensor degree: so many ranks share each matrix product, attention head by head, and the rows between (Shoeybi et al. 2019,
    # Korthikanti et al. 2022); results are those of one rank within rounding, bitwise equal at each degree. Allowed: [1,256]. Default:
    # 1.
    schedule: str
    # Order in which stages compute micro-batches: 1f1b (PipeDream-Flush), gpipe, interleaved (Narayanan et al. 2021), zb-h1 and zb-v
    # (zero bubble, Qi et al. 2023), or a table in PyTorch's notation, as st_pipeline_create takes it: a line for each stage with cells
    # such as 0F0,0F1,0B0,0B1, for the micro-batches of a step on a data rank; changes speed and memory, not results. Allowed: 1f1b
    # gpipe interleaved zb-h1 zb-v TABLE. Default: "1f1b".
    stage_chunks: int
    # Interleaved: parts of the model on each stage; 0: 2 for interleaved and zb-v, else 1. Allowed: [0,64]. Default: 0.
    stage_starts: str
    # Outermost scopes with which the parts of the model after the first one begin, separated by commas (block.3,block.6); empty: parts
    # of equal cost. Default: "".
    reduce: str
    # When ranks reduce gradients: micro, after each micro-batch, so that results do not depend on the number of ranks; or step, once
    # per step, with less traffic. Allowed: micro step. Default: "micro".
    zero: int
    # ZeRO stage (Rajbhandari et al. 2020): 0 shards nothing, 1 the optimizer state, 2 also gradients, 3 also parameters, which each
    # scope gathers before use; results are bitwise equal; no effect with one rank. Allowed: [0,3]. Default: 0.
    offload: str
    # Keeps tensors outside device memory: the optimizer state, or the fp32 parameters too (until the model is freed), or the gradients
    # as well; in offload_folder or, without one, in host memory, where device cpu keeps them anyway; results are bitwise equal.
    # Allowed: none optimizer parameters gradients. Default: "none".
    offload_folder: str
    # Offload: folder on a local disk for unnamed files, reserved up front, freed when the process ends and counted as file, not as
    # memory; empty: host memory. Refused on a device of its own memory. Default: "".
    offload_budget: int
    # Offload: bytes of the host's pinned memory that each rank may take in place of a device's; a trainer or plan that needs more is
    # refused with both numbers. 0: what the host has available. No effect on a device that computes in the host's memory. Allowed:
    # [0,inf). Default: 0.
    gradient_dtype: str
    # Element type in which ranks send gradients, which are added in accumulate_dtype: each micro-batch's gradient (reduce step: each
    # rank's sum) is rounded to it, and the step's sum once more, on one rank too; fp16 skips a step with a gradient beyond 65504, and
    # scales the loss only with precision fp16. Allowed: fp32 bf16 fp16. Default: "fp32".
    accumulate_dtype: str
    # Element type in which gradients are kept and added over micro-batches, ranks and uses of a tied weight: fp32, or that of
    # gradient_dtype, which halves their memory; every addition is rounded to it, in one order on any number of ranks, so small
    # gradients of many micro-batches are lost. Allowed: fp32 bf16 fp16. Default: "fp32".
    bucket: int
    # Bytes of gradients per collective; changes speed, not results. Allowed: [1,inf). Default: 26214400.
    overlap: str
    # Run collectives (gradients, and parameters under zero 3) on a second thread while the rank computes; changes speed, not results. A
    # device of its own memory does not overlap with offload gradients, nor with offload parameters and zero 3. Allowed: on off.
    # Default: "on".
    collectives: str
    # Ordered: the library adds what ranks exchange, in rank order, so that results depend neither on the transport nor on the number of
    # ranks; fast: NCCL adds, in its own order and in the element type that is sent. Results then depend on NCCL's version and choices
    # and on the number of ranks; all ranks have the same. fast needs ranks that are processes with an NVIDIA device each; no effect
    # with one rank. Allowed: ordered fast. Default: "ordered".
    replica_check: int
    # Compare the weights of all ranks every this many steps and fail with the rank and tensor that differ; 0: off, except that ranks in
    # separate processes compare once, before their first step. Allowed: [0,inf). Default: 0.
    threads: int
    # Threads per rank; 0: the cores of this process divided by its ranks. Allowed: [0,4096]. Default: 0.
    optimizer: str
    # Update rule; a key below that is not given takes this optimizer's default (PyTorch's; for lion the paper's). Allowed: adamw adam
    # adamw-8bit sgd adafactor lion rmsprop adagrad muon. Default: "adamw".
    lr: float
    # Learning rate after the warm-up. Allowed: [0,inf). Default: 0.001.
    lr_schedule: str
    # Learning rate as a function of successful steps. Allowed: constant linear cosine polynomial inverse_sqrt wsd one_cycle table.
    # Default: "constant".
    warmup: int
    # Steps over which the learning rate rises: f(k) = lr * min(1, (k+1) / warmup). Allowed: [0,inf). Default: 20.
    lr_steps: int
    # Length of linear, cosine, polynomial, wsd and one_cycle in successful steps, warm-up included; 0: unset, and the command line uses
    # --steps. Allowed: [0,inf). Default: 0.
    lr_min: float
    # Final learning rate of linear, cosine and polynomial, lower limit of inverse_sqrt, end of the decay of wsd. Allowed: [0,inf).
    # Default: 0.0.
    lr_power: float
    # Polynomial: exponent in lr_min + (lr - lr_min) * (1 - share of the steps)^lr_power. Allowed: (0,inf). Default: 1.0.
    lr_cycles: int
    # Cosine: number of cycles, each starting at lr again. Allowed: [1,1000000]. Default: 1.
    lr_cycle_growth: int
    # Cosine: each cycle is this many times as long as the previous one. Allowed: [1,1000]. Default: 1.
    lr_decay_steps: int
    # Wsd: length of the decay at the end of lr_steps; 0: unset. Allowed: [0,inf). Default: 0.
    lr_decay: str
    # Wsd: shape of the decay. Allowed: linear cosine 1-sqrt. Default: "linear".
    lr_pct_start: float
    # One_cycle: share of the steps in which the rate rises. Allowed: (0,1). Default: 0.3.
    lr_div_factor: float
    # One_cycle starts at lr / lr_div_factor. Allowed: (0,inf). Default: 25.0.
    lr_final_div_factor: float
    # One_cycle ends at its first rate / lr_final_div_factor. Allowed: (0,inf). Default: 10000.0.
    lr_table: str
    # Table: "0:1e-3 100:5e-4" sets the learning rate from successful step 0 and from 100, without interpolation. Default: "".
    beta1: float
    # Decay of the first moment. Allowed: [0,1). Default: 0.9.
    beta2: float
    # Decay of the second moment; rmsprop's alpha. Allowed: [0,1). Default: 0.999.
    epsilon: float
    # Added to the square root of the second moment; adafactor: lower limit of that root, 0: the machine epsilon. Allowed: [0,inf).
    # Default: 1e-08.
    weight_decay: float
    # Decoupled weight decay; added to the gradient by adam, sgd, rmsprop and adagrad. Allowed: [0,inf). Default: 0.01.
    momentum: float
    # Momentum of sgd, rmsprop and muon. Allowed: [0,1). Default: 0.0.
    dampening: float
    # Dampening of sgd's momentum. Allowed: [0,1]. Default: 0.0.
    nesterov: bool
    # Nesterov momentum for sgd and muon. Default: false.
    centered: bool
    # Rmsprop: divide by the standard deviation of the gradient. Default: false.
    rate_decay: float
    # Adagrad: the rate of update t from 1 is lr / (1 + (t - 1) rate_decay). Allowed: [0,inf). Default: 0.0.
    initial_accumulator_value: float
    # Adagrad: initial value of the sums of squares. Allowed: [0,inf). Default: 0.0.
    beta2_decay: float
    # Adafactor: beta2 of update t from 1 is 1 - t^beta2_decay. Allowed: [-100,0]. Default: -0.8.
    epsilon2: float
    # Adafactor: lower limit of the parameter's root mean square that scales its update. Allowed: [0,inf). Default: 0.001.
    clip_threshold: float
    # Adafactor: upper limit of an update's root mean square (the paper's d). Allowed: [1,inf). Default: 1.0.
    ns_steps: int
    # Muon: Newton-Schulz iterations. Allowed: [0,99]. Default: 5.
    adjust_lr: str
    # Muon: factor on the rate, original: sqrt(max(1, rows / columns)); match_rms_adamw: 0.2 sqrt(max(rows, columns)). Allowed: original
    # match_rms_adamw. Default: "original".
    groups: Sequence[Mapping[str, Any]]
    # Settings by parameter name, a list: [{"pattern": "*.bias", "lr_scale": 1, "weight_decay_scale": 0, "clip": 1, "frozen": false,
    # "optimizer": "adamw"}]; the first pattern that matches applies, * matches any text. Default: [].
    clip: float
    # Upper limit of the global gradient norm; 0: off. Allowed: [0,inf). Default: 1.0.
    clip_value: float
    # Upper limit of the magnitude of each gradient element, applied after clip; 0: off. Allowed: [0,inf). Default: 0.0.
    ema_decay: float
    # Keep an exponential moving average of the trained weights: after each successful step average = ema_decay * average + (1 -
    # ema_decay) * weight, the first step copies (torch's AveragedModel with get_ema_multi_avg_fn); 0: off. Allowed: [0,1). Default:
    # 0.0.
    dropout: float
    # Share of activations set to zero in training, at sites without a rate of their own. Allowed: [0,1). Default: 0.0.
    label_smoothing: float
    # Share of each target spread evenly over all classes in training (torch's CrossEntropyLoss); the reported training loss includes
    # it, evaluation does not. Allowed: [0,1]. Default: 0.0.
    z_loss: float
    # Adds z_loss * (log sum e^logits)^2 to each target's loss in training, which keeps logits near zero; PaLM (2022) used 1e-4.
    # Allowed: [0,inf). Default: 0.0.
    recompute: str
    # Activations that backward recomputes instead of keeping: of blocks, of attention, of all outermost scopes (full), of the cheapest
    # choice that fits recompute_budget (auto), or of scopes by pattern (block.*.mlp,head); results are bitwise equal. Allowed: none
    # blocks attention full auto SCOPES. Default: "none".
    recompute_budget: int
    # Bytes of activations that recompute auto may keep; 0: what the memory limit leaves after everything else. Allowed: [0,inf).
    # Default: 0.
    early_stopping_patience: int
    # The command line ends a run after this many evaluations in a row without a better validation loss; 0: off; a host that runs its
    # own evaluations also stops itself. Allowed: [0,inf). Default: 0.
    early_stopping_min_delta: float
    # A validation loss counts as better if it is below the best one so far by more than this. Allowed: [0,inf). Default: 0.0.
    gradient_noise_scale: bool
    # Measure the gradient noise scale (McCandlish et al. 2018), the batch in sequences beyond which larger batches stop paying;
    # compares the gradient of the first micro-batch with that of the step, so it needs 2 or more micro-batches per step and reads each
    # gradient once more. Default: false.
    find_nan: bool
    # Rerun a step whose loss or gradients are not finite in a checking mode and fail with the op, scope, tensor, index, micro-batch and
    # rank where it began; an overflow that a dynamic loss scale can still fix is skipped as usual. Default: false.
    trim_every: int
    # Release cached memory, as st_context_trim does, every this many successful steps; later calls rebuild it; 0: never. Allowed:
    # [0,inf). Default: 0.
    tune: bool
    # Measure tile sizes of matrix products before the first step; changes speed, not results. Default: false.
    gemm_library: str
    # Kernels of matrix products: own, or auto, which takes for each fp32 product of a step the fastest of own kernels and the installed
    # OpenBLAS, MKL and oneDNN, measured before the first step; a library changes result bits. Allowed: own auto. Default: "own".
    seed: int
    # Seed of initialisation, data order and dropout. Allowed: [0,inf). Default: 0.
