namespace ScaleTrain {

// Generated from runtime/recipe/recipe.def by bindings/recipe_keys.py: edit the row, not this file.
public sealed partial class Recipe {
  /// <summary>where to compute: auto, on the device of the model's context, for the command line cpu; cpu is fast; reference is slow and accumulates in double; NAME or NAME:INDEX is the device of a plug-in, which `scaletrain info` lists</summary>
  /// <remarks>Default: "auto". Allowed: auto cpu cuda reference NAME NAME:INDEX.</remarks>
  public string Device {
    get { return Word("device"); }
    set { Set("device", value); }
  }

  /// <summary>element type of matrix products and activations in training; bf16 and fp16 sum in fp32 and keep fp32 master weights, gradients and moments; fp16 scales the loss; prediction and evaluation run in fp32</summary>
  /// <remarks>Default: "fp32". Allowed: fp32 bf16 fp16.</remarks>
  public string Precision {
    get { return Word("precision"); }
    set { Set("precision", value); }
  }

  /// <summary>bf16 and fp16: scopes that still compute in fp32, nested scopes included, as patterns (block.0.*,head)</summary>
  /// <remarks>Default: "none". Allowed: none SCOPES.</remarks>
  public string Fp32Scopes {
    get { return Word("fp32_scopes"); }
    set { Set("fp32_scopes", value); }
  }

  /// <summary>element type of the residual stream in training: of what embeddings give, blocks add to and norms take and give, and of its gradients; fp32, or that of precision, which halves the activations kept for recomputed blocks and the messages between stages; norms still sum, and keep their weights, in fp32</summary>
  /// <remarks>Default: "fp32". Allowed: fp32 bf16 fp16.</remarks>
  public string ResidualDtype {
    get { return Word("residual_dtype"); }
    set { Set("residual_dtype", value); }
  }

  /// <summary>fp16: factor on the loss before backward; 0: dynamic, set by the loss_scale_ keys</summary>
  /// <remarks>Default: 0.0. Allowed: [0,inf).</remarks>
  public double LossScale {
    get { return Real("loss_scale"); }
    set { Set("loss_scale", value); }
  }

  /// <summary>the first dynamic loss scale</summary>
  /// <remarks>Default: 65536.0. Allowed: (0,inf).</remarks>
  public double LossScaleInitial {
    get { return Real("loss_scale_initial"); }
    set { Set("loss_scale_initial", value); }
  }

  /// <summary>factor on the dynamic loss scale after loss_scale_growth_interval steps in a row without a skipped one</summary>
  /// <remarks>Default: 2.0. Allowed: (1,inf).</remarks>
  public double LossScaleGrowthFactor {
    get { return Real("loss_scale_growth_factor"); }
    set { Set("loss_scale_growth_factor", value); }
  }

  /// <summary>factor on the dynamic loss scale after a skipped step</summary>
  /// <remarks>Default: 0.5. Allowed: (0,1).</remarks>
  public double LossScaleBackoffFactor {
    get { return Real("loss_scale_backoff_factor"); }
    set { Set("loss_scale_backoff_factor", value); }
  }

  /// <summary>steps in a row without a skipped one before the dynamic loss scale grows</summary>
  /// <remarks>Default: 2000. Allowed: [1,inf).</remarks>
  public long LossScaleGrowthInterval {
    get { return Integer("loss_scale_growth_interval"); }
    set { Set("loss_scale_growth_interval", value); }
  }

  /// <summary>number of the skipped step from which the dynamic loss scale backs off; the count restarts when the scale grows</summary>
  /// <remarks>Default: 1. Allowed: [1,inf).</remarks>
  public long LossScaleHysteresis {
    get { return Integer("loss_scale_hysteresis"); }
    set { Set("loss_scale_hysteresis", value); }
  }

  /// <summary>restart the count of loss_scale_hysteresis after every step that was not skipped</summary>
  /// <remarks>Default: false.</remarks>
  public bool LossScaleConsecutiveHysteresis {
    get { return Flag("loss_scale_consecutive_hysteresis"); }
    set { Set("loss_scale_consecutive_hysteresis", value); }
  }

  /// <summary>lower limit of the dynamic loss scale</summary>
  /// <remarks>Default: 1.0. Allowed: (0,inf).</remarks>
  public double LossScaleMinimum {
    get { return Real("loss_scale_minimum"); }
    set { Set("loss_scale_minimum", value); }
  }

  /// <summary>sequences per rank and micro-batch; auto: the largest that fits in memory and divides global_batch</summary>
  /// <remarks>Default: 8. Allowed: [1,inf) auto.</remarks>
  public long Batch {
    get { return Integer("batch"); }
    set { Set("batch", value); }
  }

  /// <summary>sequences per step over all ranks; if set, accumulate follows from it and batch; 0: batch times micro-batches</summary>
  /// <remarks>Default: 0. Allowed: [0,1000000].</remarks>
  public long GlobalBatch {
    get { return Integer("global_batch"); }
    set { Set("global_batch", value); }
  }

  /// <summary>micro-batches per rank and optimizer step</summary>
  /// <remarks>Default: 1. Allowed: [1,inf).</remarks>
  public long Accumulate {
    get { return Integer("accumulate"); }
    set { Set("accumulate", value); }
  }

  /// <summary>micro-batches per step over all ranks, an alternative to accumulate; 0: follows from accumulate</summary>
  /// <remarks>Default: 0. Allowed: [0,inf).</remarks>
  public long MicroBatches {
    get { return Integer("micro_batches"); }
    set { Set("micro_batches", value); }
  }

  /// <summary>ranks of all kinds: stages times data-parallel ranks, which share the micro-batches of a step, times the tensor degree; without a communicator they run as threads of this process, at most 256; 1: as many as stages times the tensor degree</summary>
  /// <remarks>Default: 1. Allowed: [1,1000000].</remarks>
  public long Ranks {
    get { return Integer("ranks"); }
    set { Set("ranks", value); }
  }

  /// <summary>pipeline stages: each has some of the model's outermost scopes, and micro-batches pass through them; results are bitwise equal</summary>
  /// <remarks>Default: 1. Allowed: [1,256].</remarks>
  public long Stages {
    get { return Integer("stages"); }
    set { Set("stages", value); }
  }

  /// <summary>tensor degree: so many ranks share each matrix product, attention head by head, and the rows between (Shoeybi et al. 2019, Korthikanti et al. 2022); results are those of one rank within rounding, bitwise equal at each degree</summary>
  /// <remarks>Default: 1. Allowed: [1,256].</remarks>
  public long Tensor {
    get { return Integer("tensor"); }
    set { Set("tensor", value); }
  }

  /// <summary>order in which stages compute micro-batches: 1f1b (PipeDream-Flush), gpipe, interleaved (Narayanan et al. 2021), zb-h1 and zb-v (zero bubble, Qi et al. 2023), or a table in PyTorch's notation, as st_pipeline_create takes it: a line for each stage with cells such as 0F0,0F1,0B0,0B1, for the micro-batches of a step on a data rank; changes speed and memory, not results</summary>
  /// <remarks>Default: "1f1b". Allowed: 1f1b gpipe interleaved zb-h1 zb-v TABLE.</remarks>
  public string Schedule {
    get { return Word("schedule"); }
    set { Set("schedule", value); }
  }

  /// <summary>interleaved: parts of the model on each stage; 0: 2 for interleaved and zb-v, else 1</summary>
  /// <remarks>Default: 0. Allowed: [0,64].</remarks>
  public long StageChunks {
    get { return Integer("stage_chunks"); }
    set { Set("stage_chunks", value); }
  }

  /// <summary>outermost scopes with which the parts of the model after the first one begin, separated by commas (block.3,block.6); empty: parts of equal cost</summary>
  /// <remarks>Default: "".</remarks>
  public string StageStarts {
    get { return Word("stage_starts"); }
    set { Set("stage_starts", value); }
  }

  /// <summary>when ranks reduce gradients: micro, after each micro-batch, so that results do not depend on the number of ranks; or step, once per step, with less traffic</summary>
  /// <remarks>Default: "micro". Allowed: micro step.</remarks>
  public string Reduce {
    get { return Word("reduce"); }
    set { Set("reduce", value); }
  }

  /// <summary>ZeRO stage (Rajbhandari et al. 2020): 0 shards nothing, 1 the optimizer state, 2 also gradients, 3 also parameters, which each scope gathers before use; results are bitwise equal; no effect with one rank</summary>
  /// <remarks>Default: 0. Allowed: [0,3].</remarks>
  public long Zero {
    get { return Integer("zero"); }
    set { Set("zero", value); }
  }

  /// <summary>keeps tensors outside device memory: the optimizer state, or the fp32 parameters too (until the model is freed), or the gradients as well; in offload_folder or, without one, in host memory, where device cpu keeps them anyway; results are bitwise equal</summary>
  /// <remarks>Default: "none". Allowed: none optimizer parameters gradients.</remarks>
  public string Offload {
    get { return Word("offload"); }
    set { Set("offload", value); }
  }

  /// <summary>offload: folder on a local disk for unnamed files, reserved up front, freed when the process ends and counted as file, not as memory; empty: host memory. Refused on a device of its own memory</summary>
  /// <remarks>Default: "".</remarks>
  public string OffloadFolder {
    get { return Word("offload_folder"); }
    set { Set("offload_folder", value); }
  }

  /// <summary>offload: bytes of the host's pinned memory that each rank may take in place of a device's; a trainer or plan that needs more is refused with both numbers. 0: what the host has available. No effect on a device that computes in the host's memory</summary>
  /// <remarks>Default: 0. Allowed: [0,inf).</remarks>
  public long OffloadBudget {
    get { return Integer("offload_budget"); }
    set { Set("offload_budget", value); }
  }

  /// <summary>element type in which ranks send gradients, which are added in accumulate_dtype: each micro-batch's gradient (reduce step: each rank's sum) is rounded to it, and the step's sum once more, on one rank too; fp16 skips a step with a gradient beyond 65504, and scales the loss only with precision fp16</summary>
  /// <remarks>Default: "fp32". Allowed: fp32 bf16 fp16.</remarks>
  public string GradientDtype {
    get { return Word("gradient_dtype"); }
    set { Set("gradient_dtype", value); }
  }

  /// <summary>element type in which gradients are kept and added over micro-batches, ranks and uses of a tied weight: fp32, or that of gradient_dtype, which halves their memory; every addition is rounded to it, in one order on any number of ranks, so small gradients of many micro-batches are lost</summary>
  /// <remarks>Default: "fp32". Allowed: fp32 bf16 fp16.</remarks>
  public string AccumulateDtype {
    get { return Word("accumulate_dtype"); }
    set { Set("accumulate_dtype", value); }
  }

  /// <summary>bytes of gradients per collective; changes speed, not results</summary>
  /// <remarks>Default: 26214400. Allowed: [1,inf).</remarks>
  public long Bucket {
    get { return Integer("bucket"); }
    set { Set("bucket", value); }
  }

  /// <summary>run collectives (gradients, and parameters under zero 3) on a second thread while the rank computes; changes speed, not results. A device of its own memory does not overlap with offload gradients, nor with offload parameters and zero 3</summary>
  /// <remarks>Default: "on". Allowed: on off.</remarks>
  public string Overlap {
    get { return Word("overlap"); }
    set { Set("overlap", value); }
  }

  /// <summary>ordered: the library adds what ranks exchange, in rank order, so that results depend neither on the transport nor on the number of ranks; fast: NCCL adds, in its own order and in the element type that is sent. Results then depend on NCCL's version and choices and on the number of ranks; all ranks have the same. fast needs ranks that are processes with an NVIDIA device each; no effect with one rank</summary>
  /// <remarks>Default: "ordered". Allowed: ordered fast.</remarks>
  public string Collectives {
    get { return Word("collectives"); }
    set { Set("collectives", value); }
  }

  /// <summary>compare the weights of all ranks every this many steps and fail with the rank and tensor that differ; 0: off, except that ranks in separate processes compare once, before their first step</summary>
  /// <remarks>Default: 0. Allowed: [0,inf).</remarks>
  public long ReplicaCheck {
    get { return Integer("replica_check"); }
    set { Set("replica_check", value); }
  }

  /// <summary>threads per rank; 0: the cores of this process divided by its ranks</summary>
  /// <remarks>Default: 0. Allowed: [0,4096].</remarks>
  public long Threads {
    get { return Integer("threads"); }
    set { Set("threads", value); }
  }

  /// <summary>update rule; a key below that is not given takes this optimizer's default (PyTorch's; for lion the paper's)</summary>
  /// <remarks>Default: "adamw". Allowed: adamw adam adamw-8bit sgd adafactor lion rmsprop adagrad muon.</remarks>
  public string Optimizer {
    get { return Word("optimizer"); }
    set { Set("optimizer", value); }
  }

  /// <summary>learning rate after the warm-up</summary>
  /// <remarks>Default: 0.001. Allowed: [0,inf).</remarks>
  public double Lr {
    get { return Real("lr"); }
    set { Set("lr", value); }
  }

  /// <summary>learning rate as a function of successful steps</summary>
  /// <remarks>Default: "constant". Allowed: constant linear cosine polynomial inverse_sqrt wsd one_cycle table.</remarks>
  public string LrSchedule {
    get { return Word("lr_schedule"); }
    set { Set("lr_schedule", value); }
  }

  /// <summary>steps over which the learning rate rises: f(k) = lr * min(1, (k+1) / warmup)</summary>
  /// <remarks>Default: 20. Allowed: [0,inf).</remarks>
  public long Warmup {
    get { return Integer("warmup"); }
    set { Set("warmup", value); }
  }

  /// <summary>length of linear, cosine, polynomial, wsd and one_cycle in successful steps, warm-up included; 0: unset, and the command line uses --steps</summary>
  /// <remarks>Default: 0. Allowed: [0,inf).</remarks>
  public long LrSteps {
    get { return Integer("lr_steps"); }
    set { Set("lr_steps", value); }
  }

  /// <summary>final learning rate of linear, cosine and polynomial, lower limit of inverse_sqrt, end of the decay of wsd</summary>
  /// <remarks>Default: 0.0. Allowed: [0,inf).</remarks>
  public double LrMin {
    get { return Real("lr_min"); }
    set { Set("lr_min", value); }
  }

  /// <summary>polynomial: exponent in lr_min + (lr - lr_min) * (1 - share of the steps)^lr_power</summary>
  /// <remarks>Default: 1.0. Allowed: (0,inf).</remarks>
  public double LrPower {
    get { return Real("lr_power"); }
    set { Set("lr_power", value); }
  }

  /// <summary>cosine: number of cycles, each starting at lr again</summary>
  /// <remarks>Default: 1. Allowed: [1,1000000].</remarks>
  public long LrCycles {
    get { return Integer("lr_cycles"); }
    set { Set("lr_cycles", value); }
  }

  /// <summary>cosine: each cycle is this many times as long as the previous one</summary>
  /// <remarks>Default: 1. Allowed: [1,1000].</remarks>
  public long LrCycleGrowth {
    get { return Integer("lr_cycle_growth"); }
    set { Set("lr_cycle_growth", value); }
  }

  /// <summary>wsd: length of the decay at the end of lr_steps; 0: unset</summary>
  /// <remarks>Default: 0. Allowed: [0,inf).</remarks>
  public long LrDecaySteps {
    get { return Integer("lr_decay_steps"); }
    set { Set("lr_decay_steps", value); }
  }

  /// <summary>wsd: shape of the decay</summary>
  /// <remarks>Default: "linear". Allowed: linear cosine 1-sqrt.</remarks>
  public string LrDecay {
    get { return Word("lr_decay"); }
    set { Set("lr_decay", value); }
  }

  /// <summary>one_cycle: share of the steps in which the rate rises</summary>
  /// <remarks>Default: 0.3. Allowed: (0,1).</remarks>
  public double LrPctStart {
    get { return Real("lr_pct_start"); }
    set { Set("lr_pct_start", value); }
  }

  /// <summary>one_cycle starts at lr / lr_div_factor</summary>
  /// <remarks>Default: 25.0. Allowed: (0,inf).</remarks>
  public double LrDivFactor {
    get { return Real("lr_div_factor"); }
    set { Set("lr_div_factor", value); }
  }

  /// <summary>one_cycle ends at its first rate / lr_final_div_factor</summary>
  /// <remarks>Default: 10000.0. Allowed: (0,inf).</remarks>
  public double LrFinalDivFactor {
    get { return Real("lr_final_div_factor"); }
    set { Set("lr_final_div_factor", value); }
  }

  /// <summary>table: "0:1e-3 100:5e-4" sets the learning rate from successful step 0 and from 100, without interpolation</summary>
  /// <remarks>Default: "".</remarks>
  public string LrTable {
    get { return Word("lr_table"); }
    set { Set("lr_table", value); }
  }

  /// <summary>decay of the first moment</summary>
  /// <remarks>Default: 0.9. Allowed: [0,1).</remarks>
  public double Beta1 {
    get { return Real("beta1"); }
    set { Set("beta1", value); }
  }

  /// <summary>decay of the second moment; rmsprop's alpha</summary>
  /// <remarks>Default: 0.999. Allowed: [0,1).</remarks>
  public double Beta2 {
    get { return Real("beta2"); }
    set { Set("beta2", value); }
  }

  /// <summary>added to the square root of the second moment; adafactor: lower limit of that root, 0: the machine epsilon</summary>
  /// <remarks>Default: 1e-08. Allowed: [0,inf).</remarks>
  public double Epsilon {
    get { return Real("epsilon"); }
    set { Set("epsilon", value); }
  }

  /// <summary>decoupled weight decay; added to the gradient by adam, sgd, rmsprop and adagrad</summary>
  /// <remarks>Default: 0.01. Allowed: [0,inf).</remarks>
  public double WeightDecay {
    get { return Real("weight_decay"); }
    set { Set("weight_decay", value); }
  }

  /// <summary>momentum of sgd, rmsprop and muon</summary>
  /// <remarks>Default: 0.0. Allowed: [0,1).</remarks>
  public double Momentum {
    get { return Real("momentum"); }
    set { Set("momentum", value); }
  }

  /// <summary>dampening of sgd's momentum</summary>
  /// <remarks>Default: 0.0. Allowed: [0,1].</remarks>
  public double Dampening {
    get { return Real("dampening"); }
    set { Set("dampening", value); }
  }

  /// <summary>Nesterov momentum for sgd and muon</summary>
  /// <remarks>Default: false.</remarks>
  public bool Nesterov {
    get { return Flag("nesterov"); }
    set { Set("nesterov", value); }
  }

  /// <summary>rmsprop: divide by the standard deviation of the gradient</summary>
  /// <remarks>Default: false.</remarks>
  public bool Centered {
    get { return Flag("centered"); }
    set { Set("centered", value); }
  }

  /// <summary>adagrad: the rate of update t from 1 is lr / (1 + (t - 1) rate_decay)</summary>
  /// <remarks>Default: 0.0. Allowed: [0,inf).</remarks>
  public double RateDecay {
    get { return Real("rate_decay"); }
    set { Set("rate_decay", value); }
  }

  /// <summary>adagrad: initial value of the sums of squares</summary>
  /// <remarks>Default: 0.0. Allowed: [0,inf).</remarks>
  public double InitialAccumulatorValue {
    get { return Real("initial_accumulator_value"); }
    set { Set("initial_accumulator_value", value); }
  }

  /// <summary>adafactor: beta2 of update t from 1 is 1 - t^beta2_decay</summary>
  /// <remarks>Default: -0.8. Allowed: [-100,0].</remarks>
  public double Beta2Decay {
    get { return Real("beta2_decay"); }
    set { Set("beta2_decay", value); }
  }

  /// <summary>adafactor: lower limit of the parameter's root mean square that scales its update</summary>
  /// <remarks>Default: 0.001. Allowed: [0,inf).</remarks>
  public double Epsilon2 {
    get { return Real("epsilon2"); }
    set { Set("epsilon2", value); }
  }

  /// <summary>adafactor: upper limit of an update's root mean square (the paper's d)</summary>
  /// <remarks>Default: 1.0. Allowed: [1,inf).</remarks>
  public double ClipThreshold {
    get { return Real("clip_threshold"); }
    set { Set("clip_threshold", value); }
  }

  /// <summary>muon: Newton-Schulz iterations</summary>
  /// <remarks>Default: 5. Allowed: [0,99].</remarks>
  public long NsSteps {
    get { return Integer("ns_steps"); }
    set { Set("ns_steps", value); }
  }

  /// <summary>muon: factor on the rate, original: sqrt(max(1, rows / columns)); match_rms_adamw: 0.2 sqrt(max(rows, columns))</summary>
  /// <remarks>Default: "original". Allowed: original match_rms_adamw.</remarks>
  public string AdjustLr {
    get { return Word("adjust_lr"); }
    set { Set("adjust_lr", value); }
  }

  /// <summary>settings by parameter name, a list: [{"pattern": "*.bias", "lr_scale": 1, "weight_decay_scale": 0, "clip": 1, "frozen": false, "optimizer": "adamw"}]; the first pattern that matches applies, * matches any text; JSON text</summary>
  /// <remarks>Default: [].</remarks>
  public string Groups {
    get { return Value("groups"); }
    set { native.set("groups", Given(value, "groups")); }
  }

  /// <summary>upper limit of the global gradient norm; 0: off</summary>
  /// <remarks>Default: 1.0. Allowed: [0,inf).</remarks>
  public double Clip {
    get { return Real("clip"); }
    set { Set("clip", value); }
  }

  /// <summary>upper limit of the magnitude of each gradient element, applied after clip; 0: off</summary>
  /// <remarks>Default: 0.0. Allowed: [0,inf).</remarks>
  public double ClipValue {
    get { return Real("clip_value"); }
    set { Set("clip_value", value); }
  }

  /// <summary>keep an exponential moving average of the trained weights: after each successful step average = ema_decay * average + (1 - ema_decay) * weight, the first step copies (torch's AveragedModel with get_ema_multi_avg_fn); 0: off</summary>
  /// <remarks>Default: 0.0. Allowed: [0,1).</remarks>
  public double EmaDecay {
    get { return Real("ema_decay"); }
    set { Set("ema_decay", value); }
  }

  /// <summary>share of activations set to zero in training, at sites without a rate of their own</summary>
  /// <remarks>Default: 0.0. Allowed: [0,1).</remarks>
  public double Dropout {
    get { return Real("dropout"); }
    set { Set("dropout", value); }
  }

  /// <summary>share of each target spread evenly over all classes in training (torch's CrossEntropyLoss); the reported training loss includes it, evaluation does not</summary>
  /// <remarks>Default: 0.0. Allowed: [0,1].</remarks>
  public double LabelSmoothing {
    get { return Real("label_smoothing"); }
    set { Set("label_smoothing", value); }
  }

  /// <summary>adds z_loss * (log sum e^logits)^2 to each target's loss in training, which keeps logits near zero; PaLM (2022) used 1e-4</summary>
  /// <remarks>Default: 0.0. Allowed: [0,inf).</remarks>
  public double ZLoss {
    get { return Real("z_loss"); }
    set { Set("z_loss", value); }
  }

  /// <summary>activations that backward recomputes instead of keeping: of blocks, of attention, of all outermost scopes (full), of the cheapest choice that fits recompute_budget (auto), or of scopes by pattern (block.*.mlp,head); results are bitwise equal</summary>
  /// <remarks>Default: "none". Allowed: none blocks attention full auto SCOPES.</remarks>
  public string Recompute {
    get { return Word("recompute"); }
    set { Set("recompute", value); }
  }

  /// <summary>bytes of activations that recompute auto may keep; 0: what the memory limit leaves after everything else</summary>
  /// <remarks>Default: 0. Allowed: [0,inf).</remarks>
  public long RecomputeBudget {
    get { return Integer("recompute_budget"); }
    set { Set("recompute_budget", value); }
  }

  /// <summary>the command line ends a run after this many evaluations in a row without a better validation loss; 0: off; a host that runs its own evaluations also stops itself</summary>
  /// <remarks>Default: 0. Allowed: [0,inf).</remarks>
  public long EarlyStoppingPatience {
    get { return Integer("early_stopping_patience"); }
    set { Set("early_stopping_patience", value); }
  }

  /// <summary>a validation loss counts as better if it is below the best one so far by more than this</summary>
  /// <remarks>Default: 0.0. Allowed: [0,inf).</remarks>
  public double EarlyStoppingMinDelta {
    get { return Real("early_stopping_min_delta"); }
    set { Set("early_stopping_min_delta", value); }
  }

  /// <summary>measure the gradient noise scale (McCandlish et al. 2018), the batch in sequences beyond which larger batches stop paying; compares the gradient of the first micro-batch with that of the step, so it needs 2 or more micro-batches per step and reads each gradient once more</summary>
  /// <remarks>Default: false.</remarks>
  public bool GradientNoiseScale {
    get { return Flag("gradient_noise_scale"); }
    set { Set("gradient_noise_scale", value); }
  }

  /// <summary>rerun a step whose loss or gradients are not finite in a checking mode and fail with the op, scope, tensor, index, micro-batch and rank where it began; an overflow that a dynamic loss scale can still fix is skipped as usual</summary>
  /// <remarks>Default: false.</remarks>
  public bool FindNan {
    get { return Flag("find_nan"); }
    set { Set("find_nan", value); }
  }

  /// <summary>release cached memory, as st_context_trim does, every this many successful steps; later calls rebuild it; 0: never</summary>
  /// <remarks>Default: 0. Allowed: [0,inf).</remarks>
  public long TrimEvery {
    get { return Integer("trim_every"); }
    set { Set("trim_every", value); }
  }

  /// <summary>measure tile sizes of matrix products before the first step; changes speed, not results</summary>
  /// <remarks>Default: false.</remarks>
  public bool Tune {
    get { return Flag("tune"); }
    set { Set("tune", value); }
  }

  /// <summary>kernels of matrix products: own, or auto, which takes for each fp32 product of a step the fastest of own kernels and the installed OpenBLAS, MKL and oneDNN, measured before the first step; a library changes result bits</summary>
  /// <remarks>Default: "own". Allowed: own auto.</remarks>
  public string GemmLibrary {
    get { return Word("gemm_library"); }
    set { Set("gemm_library", value); }
  }

  /// <summary>seed of initialisation, data order and dropout</summary>
  /// <remarks>Default: 0. Allowed: [0,inf).</remarks>
  public long Seed {
    get { return Integer("seed"); }
    set { Set("seed", value); }
  }
}

}
