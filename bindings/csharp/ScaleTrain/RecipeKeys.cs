namespace ScaleTrain {

// Generated from runtime/train/recipe.def by bindings/recipe_keys.py: edit the row, not this file.
public sealed partial class Recipe {
  /// <summary>where to compute: cpu is fast, reference is slow and double-accumulating</summary>
  /// <remarks>Default: "cpu". Allowed: cpu reference.</remarks>
  public string Device {
    get { return Word("device"); }
    set { Set("device", value); }
  }

  /// <summary>of matrix products and activations while training; bf16 and fp16: summed in fp32, over fp32 master weights, gradients and moments; fp16 scales the loss; predictions and evaluations are fp32</summary>
  /// <remarks>Default: "fp32". Allowed: fp32 bf16 fp16.</remarks>
  public string Precision {
    get { return Word("precision"); }
    set { Set("precision", value); }
  }

  /// <summary>bf16 and fp16: scopes that compute in fp32 all the same, by patterns (block.0.*,head); a scope within such a one does too</summary>
  /// <remarks>Default: "none". Allowed: none SCOPES.</remarks>
  public string Fp32Scopes {
    get { return Word("fp32_scopes"); }
    set { Set("fp32_scopes", value); }
  }

  /// <summary>fp16: what the loss is multiplied with before backward; 0: dynamic, as the next keys say</summary>
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

  /// <summary>what the dynamic loss scale is multiplied with after growth_interval steps without a skipped one</summary>
  /// <remarks>Default: 2.0. Allowed: (1,inf).</remarks>
  public double LossScaleGrowthFactor {
    get { return Real("loss_scale_growth_factor"); }
    set { Set("loss_scale_growth_factor", value); }
  }

  /// <summary>what the dynamic loss scale is multiplied with after a skipped step</summary>
  /// <remarks>Default: 0.5. Allowed: (0,1).</remarks>
  public double LossScaleBackoffFactor {
    get { return Real("loss_scale_backoff_factor"); }
    set { Set("loss_scale_backoff_factor", value); }
  }

  /// <summary>steps without a skipped one after which the dynamic loss scale grows</summary>
  /// <remarks>Default: 2000. Allowed: [1,inf).</remarks>
  public long LossScaleGrowthInterval {
    get { return Integer("loss_scale_growth_interval"); }
    set { Set("loss_scale_growth_interval", value); }
  }

  /// <summary>skipped steps that the dynamic loss scale bears before it falls, and falls with each one on; it bears as many again when it has grown</summary>
  /// <remarks>Default: 1. Allowed: [1,inf).</remarks>
  public long LossScaleHysteresis {
    get { return Integer("loss_scale_hysteresis"); }
    set { Set("loss_scale_hysteresis", value); }
  }

  /// <summary>it bears as many again after each step that was not skipped</summary>
  /// <remarks>Default: false.</remarks>
  public bool LossScaleConsecutiveHysteresis {
    get { return Flag("loss_scale_consecutive_hysteresis"); }
    set { Set("loss_scale_consecutive_hysteresis", value); }
  }

  /// <summary>the dynamic loss scale falls no lower</summary>
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

  /// <summary>sequences per step in all; 0: batch times micro-batches. With it accumulate follows from the batch</summary>
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

  /// <summary>micro-batches per step in all; the other way to say accumulate (0: that says it)</summary>
  /// <remarks>Default: 0. Allowed: [0,inf).</remarks>
  public long MicroBatches {
    get { return Integer("micro_batches"); }
    set { Set("micro_batches", value); }
  }

  /// <summary>data ranks, which share a step's micro-batches: threads of this process, each with what zero leaves it of the model</summary>
  /// <remarks>Default: 1. Allowed: [1,256].</remarks>
  public long Ranks {
    get { return Integer("ranks"); }
    set { Set("ranks", value); }
  }

  /// <summary>what ranks exchange: each micro-batch's gradients, so that the bits do not depend on ranks, or each rank's sums once a step, less on the wire</summary>
  /// <remarks>Default: "micro". Allowed: micro step.</remarks>
  public string Reduce {
    get { return Word("reduce"); }
    set { Set("reduce", value); }
  }

  /// <summary>ZeRO (Rajbhandari et al. 2020), what ranks have only pieces of, the same bits: 0 nothing, 1 the optimizer's state, 2 gradients too, 3 parameters too, which each scope gathers for itself. With one rank it is nothing</summary>
  /// <remarks>Default: 0. Allowed: [0,3].</remarks>
  public long Zero {
    get { return Integer("zero"); }
    set { Set("zero", value); }
  }

  /// <summary>what lies outside the device's memory, the same bits: the optimizer's state, or the fp32 parameters too; in host memory, which is where a device cpu has them anyway, or in offload_folder. Parameters stay there until the model is freed</summary>
  /// <remarks>Default: "none". Allowed: none optimizer parameters.</remarks>
  public string Offload {
    get { return Word("offload"); }
    set { Set("offload", value); }
  }

  /// <summary>offload: a folder of a local disk, in which files without a name have it all, reserved up front and gone with the process; counted as file, not as memory. Empty: host memory</summary>
  /// <remarks>Default: "".</remarks>
  public string OffloadFolder {
    get { return Word("offload_folder"); }
    set { Set("offload_folder", value); }
  }

  /// <summary>bytes of gradients that ranks exchange together; changes speed, no bit</summary>
  /// <remarks>Default: 26214400. Allowed: [1,inf).</remarks>
  public long Bucket {
    get { return Integer("bucket"); }
    set { Set("bucket", value); }
  }

  /// <summary>exchange gradients, and with zero 3 parameters, while a rank computes, on a thread beside its own; changes speed, no bit</summary>
  /// <remarks>Default: "on". Allowed: on off.</remarks>
  public string Overlap {
    get { return Word("overlap"); }
    set { Set("overlap", value); }
  }

  /// <summary>compare the weights of all ranks before each so many steps, and end with the rank and the tensor that differ; 0 is off, and ranks that are processes do it before their first step alone</summary>
  /// <remarks>Default: 0. Allowed: [0,inf).</remarks>
  public long ReplicaCheck {
    get { return Integer("replica_check"); }
    set { Set("replica_check", value); }
  }

  /// <summary>per rank; 0: this process's cores / ranks</summary>
  /// <remarks>Default: 0. Allowed: [0,4096].</remarks>
  public long Threads {
    get { return Integer("threads"); }
    set { Set("threads", value); }
  }

  /// <summary>what updates the parameters; keys below that are not given take its own defaults (PyTorch's, Lion the paper's)</summary>
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

  /// <summary>length of linear, cosine, polynomial, wsd and one_cycle in successful steps, warm-up included; 0: unset, and the command line takes --steps</summary>
  /// <remarks>Default: 0. Allowed: [0,inf).</remarks>
  public long LrSteps {
    get { return Integer("lr_steps"); }
    set { Set("lr_steps", value); }
  }

  /// <summary>what linear, cosine, polynomial, inverse_sqrt and wsd fall to</summary>
  /// <remarks>Default: 0.0. Allowed: [0,inf).</remarks>
  public double LrMin {
    get { return Real("lr_min"); }
    set { Set("lr_min", value); }
  }

  /// <summary>polynomial: lr_min + (lr - lr_min) * (1 - share of the steps)^lr_power</summary>
  /// <remarks>Default: 1.0. Allowed: (0,inf).</remarks>
  public double LrPower {
    get { return Real("lr_power"); }
    set { Set("lr_power", value); }
  }

  /// <summary>cosine: so many falls, each from lr again</summary>
  /// <remarks>Default: 1. Allowed: [1,1000000].</remarks>
  public long LrCycles {
    get { return Integer("lr_cycles"); }
    set { Set("lr_cycles", value); }
  }

  /// <summary>cosine: each cycle is so many times as long as the one before</summary>
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

  /// <summary>one_cycle: share of the steps over which it rises</summary>
  /// <remarks>Default: 0.3. Allowed: (0,1).</remarks>
  public double LrPctStart {
    get { return Real("lr_pct_start"); }
    set { Set("lr_pct_start", value); }
  }

  /// <summary>one_cycle begins at lr / lr_div_factor</summary>
  /// <remarks>Default: 25.0. Allowed: (0,inf).</remarks>
  public double LrDivFactor {
    get { return Real("lr_div_factor"); }
    set { Set("lr_div_factor", value); }
  }

  /// <summary>one_cycle ends at its begin / lr_final_div_factor</summary>
  /// <remarks>Default: 10000.0. Allowed: (0,inf).</remarks>
  public double LrFinalDivFactor {
    get { return Real("lr_final_div_factor"); }
    set { Set("lr_final_div_factor", value); }
  }

  /// <summary>table: "0:1e-3 100:5e-4", the learning rate from each number of successful steps on, without interpolation</summary>
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

  /// <summary>added to the square root of the second moment; adafactor: the least second moment's root, 0: the machine epsilon</summary>
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

  /// <summary>of sgd, rmsprop and muon</summary>
  /// <remarks>Default: 0.0. Allowed: [0,1).</remarks>
  public double Momentum {
    get { return Real("momentum"); }
    set { Set("momentum", value); }
  }

  /// <summary>of sgd's momentum</summary>
  /// <remarks>Default: 0.0. Allowed: [0,1].</remarks>
  public double Dampening {
    get { return Real("dampening"); }
    set { Set("dampening", value); }
  }

  /// <summary>Nesterov's momentum, of sgd and muon</summary>
  /// <remarks>Default: false.</remarks>
  public bool Nesterov {
    get { return Flag("nesterov"); }
    set { Set("nesterov", value); }
  }

  /// <summary>rmsprop: divides by the gradient's deviation</summary>
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

  /// <summary>adagrad: what its sums of squares begin with</summary>
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

  /// <summary>adafactor: the least size of a parameter that scales its step</summary>
  /// <remarks>Default: 0.001. Allowed: [0,inf).</remarks>
  public double Epsilon2 {
    get { return Real("epsilon2"); }
    set { Set("epsilon2", value); }
  }

  /// <summary>adafactor: largest root mean square of an update, its d</summary>
  /// <remarks>Default: 1.0. Allowed: [1,inf).</remarks>
  public double ClipThreshold {
    get { return Real("clip_threshold"); }
    set { Set("clip_threshold", value); }
  }

  /// <summary>muon: steps of Newton-Schulz</summary>
  /// <remarks>Default: 5. Allowed: [0,99].</remarks>
  public long NsSteps {
    get { return Integer("ns_steps"); }
    set { Set("ns_steps", value); }
  }

  /// <summary>muon: the rate times sqrt(max(1, rows / columns)), or 0.2 sqrt(max(rows, columns))</summary>
  /// <remarks>Default: "original". Allowed: original match_rms_adamw.</remarks>
  public string AdjustLr {
    get { return Word("adjust_lr"); }
    set { Set("adjust_lr", value); }
  }

  /// <summary>parameters by name, a list: [{"pattern": "*.bias", "lr_scale": 1, "weight_decay_scale": 0, "clip": 1, "frozen": false, "optimizer": "adamw"}]; the first pattern that fits counts, * is any text; JSON text</summary>
  /// <remarks>Default: [].</remarks>
  public string Groups {
    get { return Value("groups"); }
    set { native.set("groups", Given(value, "groups")); }
  }

  /// <summary>largest global norm of the gradient; 0 is off</summary>
  /// <remarks>Default: 1.0. Allowed: [0,inf).</remarks>
  public double Clip {
    get { return Real("clip"); }
    set { Set("clip", value); }
  }

  /// <summary>largest magnitude of an element of the gradient, after clip; 0 is off</summary>
  /// <remarks>Default: 0.0. Allowed: [0,inf).</remarks>
  public double ClipValue {
    get { return Real("clip_value"); }
    set { Set("clip_value", value); }
  }

  /// <summary>keeps an exponential moving average of the trained weights beside them: after each successful step average = ema_decay * average + (1 - ema_decay) * weight, the first one copies (torch's AveragedModel with get_ema_multi_avg_fn); 0 is off</summary>
  /// <remarks>Default: 0.0. Allowed: [0,1).</remarks>
  public double EmaDecay {
    get { return Real("ema_decay"); }
    set { Set("ema_decay", value); }
  }

  /// <summary>share of activations set to zero while training, at sites that name no rate of their own</summary>
  /// <remarks>Default: 0.0. Allowed: [0,1).</remarks>
  public double Dropout {
    get { return Real("dropout"); }
    set { Set("dropout", value); }
  }

  /// <summary>share of each target that goes evenly to all classes while training (torch's CrossEntropyLoss); the loss that is shown is the one that is trained, evaluations are without</summary>
  /// <remarks>Default: 0.0. Allowed: [0,1].</remarks>
  public double LabelSmoothing {
    get { return Real("label_smoothing"); }
    set { Set("label_smoothing", value); }
  }

  /// <summary>adds z_loss * (log sum e^logits)^2 to each target's loss while training, so that logits stay near zero; PaLM (2022) took 1e-4</summary>
  /// <remarks>Default: 0.0. Allowed: [0,inf).</remarks>
  public double ZLoss {
    get { return Real("z_loss"); }
    set { Set("z_loss", value); }
  }

  /// <summary>activations that backward makes again instead of keeping them, the same bits: of the blocks, of attention, of all outermost scopes, of what fits recompute_budget with the least arithmetic, or of the scopes that patterns match (block.*.mlp,head)</summary>
  /// <remarks>Default: "none". Allowed: none blocks attention full auto SCOPES.</remarks>
  public string Recompute {
    get { return Word("recompute"); }
    set { Set("recompute", value); }
  }

  /// <summary>bytes of activations that recompute auto is to fit; 0: what the memory limit leaves beside the rest</summary>
  /// <remarks>Default: 0. Allowed: [0,inf).</remarks>
  public long RecomputeBudget {
    get { return Integer("recompute_budget"); }
    set { Set("recompute_budget", value); }
  }

  /// <summary>the command line ends a run after so many evaluations in a row whose validation loss was no improvement; 0 is off, and a host that evaluates by itself stops by itself</summary>
  /// <remarks>Default: 0. Allowed: [0,inf).</remarks>
  public long EarlyStoppingPatience {
    get { return Integer("early_stopping_patience"); }
    set { Set("early_stopping_patience", value); }
  }

  /// <summary>what the validation loss must fall by, below the best one so far, to be an improvement: by more than this</summary>
  /// <remarks>Default: 0.0. Allowed: [0,inf).</remarks>
  public double EarlyStoppingMinDelta {
    get { return Real("early_stopping_min_delta"); }
    set { Set("early_stopping_min_delta", value); }
  }

  /// <summary>measure the gradient noise scale (McCandlish et al. 2018), the batch in sequences above which larger ones stop paying, from the first micro-batch's gradient and the whole step's; needs 2 micro-batches a step or more, and reads each gradient once more</summary>
  /// <remarks>Default: false.</remarks>
  public bool GradientNoiseScale {
    get { return Flag("gradient_noise_scale"); }
    set { Set("gradient_noise_scale", value); }
  }

  /// <summary>a step whose loss or gradients are not finite is run again in a checking mode and ends as an error that names the op, scope, tensor, index, micro-batch and rank where it began; an overflow that a dynamic loss scale can still answer is skipped as ever</summary>
  /// <remarks>Default: false.</remarks>
  public bool FindNan {
    get { return Flag("find_nan"); }
    set { Set("find_nan", value); }
  }

  /// <summary>successful steps after which what only makes later calls quicker is given back, as st_context_trim does, each time; 0 is never</summary>
  /// <remarks>Default: 0. Allowed: [0,inf).</remarks>
  public long TrimEvery {
    get { return Integer("trim_every"); }
    set { Set("trim_every", value); }
  }

  /// <summary>measure the tiles of the products before the first step; changes speed, no bit</summary>
  /// <remarks>Default: false.</remarks>
  public bool Tune {
    get { return Flag("tune"); }
    set { Set("tune", value); }
  }

  /// <summary>what multiplies: own, or auto: of a step's fp32 products each by the fastest of own kernels, OpenBLAS, MKL and oneDNN, where they are, measured before the first step; a library changes the bits</summary>
  /// <remarks>Default: "own". Allowed: own auto.</remarks>
  public string GemmLibrary {
    get { return Word("gemm_library"); }
    set { Set("gemm_library", value); }
  }

  /// <summary>of initialisation, data order and dropout</summary>
  /// <remarks>Default: 0. Allowed: [0,inf).</remarks>
  public long Seed {
    get { return Integer("seed"); }
    set { Set("seed", value); }
  }
}

}
