package org.scaletrain;

import java.util.List;
import java.util.Map;

/**
 * A typed setter and getter for each recipe key. A key that is not set has its default.
 *
 * <p>Generated from {@code runtime/train/recipe.def} by {@code bindings/recipe_keys.py}: edit the row, not this file.
 */
public abstract class RecipeKeys extends Handle {
  RecipeKeys() {}

  /** Sets any key. */
  public abstract Recipe set(String key, Object value);

  /** The value of any key. */
  public abstract Object get(String key);

  private Number number(String key) {
    return of(key, Number.class);
  }

  private boolean yes(String key) {
    return of(key, Boolean.class);
  }

  private String text(String key) {
    return of(key, String.class);
  }

  @SuppressWarnings("unchecked")
  private List<Map<String, Object>> list(String key) {
    return of(key, List.class);
  }

  private <T> T of(String key, Class<T> type) {
    Object value = get(key);
    if (type.isInstance(value)) return type.cast(value);
    throw new WrongState("Recipe: " + key + " is " + Json.text(value) + ", which has another type; use get(\"" + key + "\")");
  }

  /** Where to compute: cpu is fast, reference is slow and double-accumulating. Allowed: cpu reference. Default: "cpu". */
  public Recipe device(String value) {
    return set("device", value);
  }

  /** The value set by {@link #device(String)}. */
  public String device() {
    return text("device");
  }

  /**
   * Of matrix products and activations while training; bf16 and fp16: summed in fp32, over fp32 master weights, gradients and moments;
   * fp16 scales the loss; predictions and evaluations are fp32. Allowed: fp32 bf16 fp16. Default: "fp32".
   */
  public Recipe precision(String value) {
    return set("precision", value);
  }

  /** The value set by {@link #precision(String)}. */
  public String precision() {
    return text("precision");
  }

  /**
   * Bf16 and fp16: scopes that compute in fp32 all the same, by patterns (block.0.*,head); a scope within such a one does too.
   * Allowed: none SCOPES. Default: "none".
   */
  public Recipe fp32Scopes(String value) {
    return set("fp32_scopes", value);
  }

  /** The value set by {@link #fp32Scopes(String)}. */
  public String fp32Scopes() {
    return text("fp32_scopes");
  }

  /** Fp16: what the loss is multiplied with before backward; 0: dynamic, as the next keys say. Allowed: [0,inf). Default: 0.0. */
  public Recipe lossScale(double value) {
    return set("loss_scale", value);
  }

  /** The value set by {@link #lossScale(double)}. */
  public double lossScale() {
    return number("loss_scale").doubleValue();
  }

  /** The first dynamic loss scale. Allowed: (0,inf). Default: 65536.0. */
  public Recipe lossScaleInitial(double value) {
    return set("loss_scale_initial", value);
  }

  /** The value set by {@link #lossScaleInitial(double)}. */
  public double lossScaleInitial() {
    return number("loss_scale_initial").doubleValue();
  }

  /** What the dynamic loss scale is multiplied with after growth_interval steps without a skipped one. Allowed: (1,inf). Default: 2.0. */
  public Recipe lossScaleGrowthFactor(double value) {
    return set("loss_scale_growth_factor", value);
  }

  /** The value set by {@link #lossScaleGrowthFactor(double)}. */
  public double lossScaleGrowthFactor() {
    return number("loss_scale_growth_factor").doubleValue();
  }

  /** What the dynamic loss scale is multiplied with after a skipped step. Allowed: (0,1). Default: 0.5. */
  public Recipe lossScaleBackoffFactor(double value) {
    return set("loss_scale_backoff_factor", value);
  }

  /** The value set by {@link #lossScaleBackoffFactor(double)}. */
  public double lossScaleBackoffFactor() {
    return number("loss_scale_backoff_factor").doubleValue();
  }

  /** Steps without a skipped one after which the dynamic loss scale grows. Allowed: [1,inf). Default: 2000. */
  public Recipe lossScaleGrowthInterval(long value) {
    return set("loss_scale_growth_interval", value);
  }

  /** The value set by {@link #lossScaleGrowthInterval(long)}. */
  public long lossScaleGrowthInterval() {
    return number("loss_scale_growth_interval").longValue();
  }

  /**
   * Skipped steps that the dynamic loss scale bears before it falls, and falls with each one on; it bears as many again when it has
   * grown. Allowed: [1,inf). Default: 1.
   */
  public Recipe lossScaleHysteresis(long value) {
    return set("loss_scale_hysteresis", value);
  }

  /** The value set by {@link #lossScaleHysteresis(long)}. */
  public long lossScaleHysteresis() {
    return number("loss_scale_hysteresis").longValue();
  }

  /** It bears as many again after each step that was not skipped. Default: false. */
  public Recipe lossScaleConsecutiveHysteresis(boolean value) {
    return set("loss_scale_consecutive_hysteresis", value);
  }

  /** The value set by {@link #lossScaleConsecutiveHysteresis(boolean)}. */
  public boolean lossScaleConsecutiveHysteresis() {
    return yes("loss_scale_consecutive_hysteresis");
  }

  /** The dynamic loss scale falls no lower. Allowed: (0,inf). Default: 1.0. */
  public Recipe lossScaleMinimum(double value) {
    return set("loss_scale_minimum", value);
  }

  /** The value set by {@link #lossScaleMinimum(double)}. */
  public double lossScaleMinimum() {
    return number("loss_scale_minimum").doubleValue();
  }

  /**
   * Sequences per rank and micro-batch; auto: the largest that fits in memory and divides global_batch. Allowed: [1,inf) auto.
   * Default: 8.
   */
  public Recipe batch(long value) {
    return set("batch", value);
  }

  /** The value set by {@link #batch(long)}. */
  public long batch() {
    return number("batch").longValue();
  }

  /**
   * Sequences per step in all; 0: batch times micro-batches. With it accumulate follows from the batch. Allowed: [0,1000000]. Default:
   * 0.
   */
  public Recipe globalBatch(long value) {
    return set("global_batch", value);
  }

  /** The value set by {@link #globalBatch(long)}. */
  public long globalBatch() {
    return number("global_batch").longValue();
  }

  /** Micro-batches per rank and optimizer step. Allowed: [1,inf). Default: 1. */
  public Recipe accumulate(long value) {
    return set("accumulate", value);
  }

  /** The value set by {@link #accumulate(long)}. */
  public long accumulate() {
    return number("accumulate").longValue();
  }

  /** Micro-batches per step in all; the other way to say accumulate (0: that says it). Allowed: [0,inf). Default: 0. */
  public Recipe microBatches(long value) {
    return set("micro_batches", value);
  }

  /** The value set by {@link #microBatches(long)}. */
  public long microBatches() {
    return number("micro_batches").longValue();
  }

  /**
   * Data ranks, which share a step's micro-batches: threads of this process, each with what zero leaves it of the model. Allowed:
   * [1,256]. Default: 1.
   */
  public Recipe ranks(long value) {
    return set("ranks", value);
  }

  /** The value set by {@link #ranks(long)}. */
  public long ranks() {
    return number("ranks").longValue();
  }

  /**
   * What ranks exchange: each micro-batch's gradients, so that the bits do not depend on ranks, or each rank's sums once a step, less
   * on the wire. Allowed: micro step. Default: "micro".
   */
  public Recipe reduce(String value) {
    return set("reduce", value);
  }

  /** The value set by {@link #reduce(String)}. */
  public String reduce() {
    return text("reduce");
  }

  /**
   * ZeRO (Rajbhandari et al. 2020), what ranks have only pieces of, the same bits: 0 nothing, 1 the optimizer's state, 2 gradients
   * too, 3 parameters too, which each scope gathers for itself. With one rank it is nothing. Allowed: [0,3]. Default: 0.
   */
  public Recipe zero(long value) {
    return set("zero", value);
  }

  /** The value set by {@link #zero(long)}. */
  public long zero() {
    return number("zero").longValue();
  }

  /**
   * What lies outside the device's memory, the same bits: the optimizer's state, or the fp32 parameters too; in host memory, which is
   * where a device cpu has them anyway, or in offload_folder. Parameters stay there until the model is freed. Allowed: none optimizer
   * parameters. Default: "none".
   */
  public Recipe offload(String value) {
    return set("offload", value);
  }

  /** The value set by {@link #offload(String)}. */
  public String offload() {
    return text("offload");
  }

  /**
   * Offload: a folder of a local disk, in which files without a name have it all, reserved up front and gone with the process; counted
   * as file, not as memory. Empty: host memory. Default: "".
   */
  public Recipe offloadFolder(String value) {
    return set("offload_folder", value);
  }

  /** The value set by {@link #offloadFolder(String)}. */
  public String offloadFolder() {
    return text("offload_folder");
  }

  /** Bytes of gradients that ranks exchange together; changes speed, no bit. Allowed: [1,inf). Default: 26214400. */
  public Recipe bucket(long value) {
    return set("bucket", value);
  }

  /** The value set by {@link #bucket(long)}. */
  public long bucket() {
    return number("bucket").longValue();
  }

  /**
   * Exchange gradients, and with zero 3 parameters, while a rank computes, on a thread beside its own; changes speed, no bit. Allowed:
   * on off. Default: "on".
   */
  public Recipe overlap(String value) {
    return set("overlap", value);
  }

  /** The value set by {@link #overlap(String)}. */
  public String overlap() {
    return text("overlap");
  }

  /**
   * Compare the weights of all ranks before each so many steps, and end with the rank and the tensor that differ; 0 is off, and ranks
   * that are processes do it before their first step alone. Allowed: [0,inf). Default: 0.
   */
  public Recipe replicaCheck(long value) {
    return set("replica_check", value);
  }

  /** The value set by {@link #replicaCheck(long)}. */
  public long replicaCheck() {
    return number("replica_check").longValue();
  }

  /** Per rank; 0: this process's cores / ranks. Allowed: [0,4096]. Default: 0. */
  public Recipe threads(long value) {
    return set("threads", value);
  }

  /** The value set by {@link #threads(long)}. */
  public long threads() {
    return number("threads").longValue();
  }

  /**
   * What updates the parameters; keys below that are not given take its own defaults (PyTorch's, Lion the paper's). Allowed: adamw
   * adam adamw-8bit sgd adafactor lion rmsprop adagrad muon. Default: "adamw".
   */
  public Recipe optimizer(String value) {
    return set("optimizer", value);
  }

  /** The value set by {@link #optimizer(String)}. */
  public String optimizer() {
    return text("optimizer");
  }

  /** Learning rate after the warm-up. Allowed: [0,inf). Default: 0.001. */
  public Recipe lr(double value) {
    return set("lr", value);
  }

  /** The value set by {@link #lr(double)}. */
  public double lr() {
    return number("lr").doubleValue();
  }

  /**
   * Learning rate as a function of successful steps. Allowed: constant linear cosine polynomial inverse_sqrt wsd one_cycle table.
   * Default: "constant".
   */
  public Recipe lrSchedule(String value) {
    return set("lr_schedule", value);
  }

  /** The value set by {@link #lrSchedule(String)}. */
  public String lrSchedule() {
    return text("lr_schedule");
  }

  /** Steps over which the learning rate rises: f(k) = lr * min(1, (k+1) / warmup). Allowed: [0,inf). Default: 20. */
  public Recipe warmup(long value) {
    return set("warmup", value);
  }

  /** The value set by {@link #warmup(long)}. */
  public long warmup() {
    return number("warmup").longValue();
  }

  /**
   * Length of linear, cosine, polynomial, wsd and one_cycle in successful steps, warm-up included; 0: unset, and the command line
   * takes --steps. Allowed: [0,inf). Default: 0.
   */
  public Recipe lrSteps(long value) {
    return set("lr_steps", value);
  }

  /** The value set by {@link #lrSteps(long)}. */
  public long lrSteps() {
    return number("lr_steps").longValue();
  }

  /** What linear, cosine, polynomial, inverse_sqrt and wsd fall to. Allowed: [0,inf). Default: 0.0. */
  public Recipe lrMin(double value) {
    return set("lr_min", value);
  }

  /** The value set by {@link #lrMin(double)}. */
  public double lrMin() {
    return number("lr_min").doubleValue();
  }

  /** Polynomial: lr_min + (lr - lr_min) * (1 - share of the steps)^lr_power. Allowed: (0,inf). Default: 1.0. */
  public Recipe lrPower(double value) {
    return set("lr_power", value);
  }

  /** The value set by {@link #lrPower(double)}. */
  public double lrPower() {
    return number("lr_power").doubleValue();
  }

  /** Cosine: so many falls, each from lr again. Allowed: [1,1000000]. Default: 1. */
  public Recipe lrCycles(long value) {
    return set("lr_cycles", value);
  }

  /** The value set by {@link #lrCycles(long)}. */
  public long lrCycles() {
    return number("lr_cycles").longValue();
  }

  /** Cosine: each cycle is so many times as long as the one before. Allowed: [1,1000]. Default: 1. */
  public Recipe lrCycleGrowth(long value) {
    return set("lr_cycle_growth", value);
  }

  /** The value set by {@link #lrCycleGrowth(long)}. */
  public long lrCycleGrowth() {
    return number("lr_cycle_growth").longValue();
  }

  /** Wsd: length of the decay at the end of lr_steps; 0: unset. Allowed: [0,inf). Default: 0. */
  public Recipe lrDecaySteps(long value) {
    return set("lr_decay_steps", value);
  }

  /** The value set by {@link #lrDecaySteps(long)}. */
  public long lrDecaySteps() {
    return number("lr_decay_steps").longValue();
  }

  /** Wsd: shape of the decay. Allowed: linear cosine 1-sqrt. Default: "linear". */
  public Recipe lrDecay(String value) {
    return set("lr_decay", value);
  }

  /** The value set by {@link #lrDecay(String)}. */
  public String lrDecay() {
    return text("lr_decay");
  }

  /** One_cycle: share of the steps over which it rises. Allowed: (0,1). Default: 0.3. */
  public Recipe lrPctStart(double value) {
    return set("lr_pct_start", value);
  }

  /** The value set by {@link #lrPctStart(double)}. */
  public double lrPctStart() {
    return number("lr_pct_start").doubleValue();
  }

  /** One_cycle begins at lr / lr_div_factor. Allowed: (0,inf). Default: 25.0. */
  public Recipe lrDivFactor(double value) {
    return set("lr_div_factor", value);
  }

  /** The value set by {@link #lrDivFactor(double)}. */
  public double lrDivFactor() {
    return number("lr_div_factor").doubleValue();
  }

  /** One_cycle ends at its begin / lr_final_div_factor. Allowed: (0,inf). Default: 10000.0. */
  public Recipe lrFinalDivFactor(double value) {
    return set("lr_final_div_factor", value);
  }

  /** The value set by {@link #lrFinalDivFactor(double)}. */
  public double lrFinalDivFactor() {
    return number("lr_final_div_factor").doubleValue();
  }

  /** Table: "0:1e-3 100:5e-4", the learning rate from each number of successful steps on, without interpolation. Default: "". */
  public Recipe lrTable(String value) {
    return set("lr_table", value);
  }

  /** The value set by {@link #lrTable(String)}. */
  public String lrTable() {
    return text("lr_table");
  }

  /** Decay of the first moment. Allowed: [0,1). Default: 0.9. */
  public Recipe beta1(double value) {
    return set("beta1", value);
  }

  /** The value set by {@link #beta1(double)}. */
  public double beta1() {
    return number("beta1").doubleValue();
  }

  /** Decay of the second moment; rmsprop's alpha. Allowed: [0,1). Default: 0.999. */
  public Recipe beta2(double value) {
    return set("beta2", value);
  }

  /** The value set by {@link #beta2(double)}. */
  public double beta2() {
    return number("beta2").doubleValue();
  }

  /**
   * Added to the square root of the second moment; adafactor: the least second moment's root, 0: the machine epsilon. Allowed:
   * [0,inf). Default: 1e-08.
   */
  public Recipe epsilon(double value) {
    return set("epsilon", value);
  }

  /** The value set by {@link #epsilon(double)}. */
  public double epsilon() {
    return number("epsilon").doubleValue();
  }

  /** Decoupled weight decay; added to the gradient by adam, sgd, rmsprop and adagrad. Allowed: [0,inf). Default: 0.01. */
  public Recipe weightDecay(double value) {
    return set("weight_decay", value);
  }

  /** The value set by {@link #weightDecay(double)}. */
  public double weightDecay() {
    return number("weight_decay").doubleValue();
  }

  /** Of sgd, rmsprop and muon. Allowed: [0,1). Default: 0.0. */
  public Recipe momentum(double value) {
    return set("momentum", value);
  }

  /** The value set by {@link #momentum(double)}. */
  public double momentum() {
    return number("momentum").doubleValue();
  }

  /** Of sgd's momentum. Allowed: [0,1]. Default: 0.0. */
  public Recipe dampening(double value) {
    return set("dampening", value);
  }

  /** The value set by {@link #dampening(double)}. */
  public double dampening() {
    return number("dampening").doubleValue();
  }

  /** Nesterov's momentum, of sgd and muon. Default: false. */
  public Recipe nesterov(boolean value) {
    return set("nesterov", value);
  }

  /** The value set by {@link #nesterov(boolean)}. */
  public boolean nesterov() {
    return yes("nesterov");
  }

  /** Rmsprop: divides by the gradient's deviation. Default: false. */
  public Recipe centered(boolean value) {
    return set("centered", value);
  }

  /** The value set by {@link #centered(boolean)}. */
  public boolean centered() {
    return yes("centered");
  }

  /** Adagrad: the rate of update t from 1 is lr / (1 + (t - 1) rate_decay). Allowed: [0,inf). Default: 0.0. */
  public Recipe rateDecay(double value) {
    return set("rate_decay", value);
  }

  /** The value set by {@link #rateDecay(double)}. */
  public double rateDecay() {
    return number("rate_decay").doubleValue();
  }

  /** Adagrad: what its sums of squares begin with. Allowed: [0,inf). Default: 0.0. */
  public Recipe initialAccumulatorValue(double value) {
    return set("initial_accumulator_value", value);
  }

  /** The value set by {@link #initialAccumulatorValue(double)}. */
  public double initialAccumulatorValue() {
    return number("initial_accumulator_value").doubleValue();
  }

  /** Adafactor: beta2 of update t from 1 is 1 - t^beta2_decay. Allowed: [-100,0]. Default: -0.8. */
  public Recipe beta2Decay(double value) {
    return set("beta2_decay", value);
  }

  /** The value set by {@link #beta2Decay(double)}. */
  public double beta2Decay() {
    return number("beta2_decay").doubleValue();
  }

  /** Adafactor: the least size of a parameter that scales its step. Allowed: [0,inf). Default: 0.001. */
  public Recipe epsilon2(double value) {
    return set("epsilon2", value);
  }

  /** The value set by {@link #epsilon2(double)}. */
  public double epsilon2() {
    return number("epsilon2").doubleValue();
  }

  /** Adafactor: largest root mean square of an update, its d. Allowed: [1,inf). Default: 1.0. */
  public Recipe clipThreshold(double value) {
    return set("clip_threshold", value);
  }

  /** The value set by {@link #clipThreshold(double)}. */
  public double clipThreshold() {
    return number("clip_threshold").doubleValue();
  }

  /** Muon: steps of Newton-Schulz. Allowed: [0,99]. Default: 5. */
  public Recipe nsSteps(long value) {
    return set("ns_steps", value);
  }

  /** The value set by {@link #nsSteps(long)}. */
  public long nsSteps() {
    return number("ns_steps").longValue();
  }

  /**
   * Muon: the rate times sqrt(max(1, rows / columns)), or 0.2 sqrt(max(rows, columns)). Allowed: original match_rms_adamw. Default:
   * "original".
   */
  public Recipe adjustLr(String value) {
    return set("adjust_lr", value);
  }

  /** The value set by {@link #adjustLr(String)}. */
  public String adjustLr() {
    return text("adjust_lr");
  }

  /**
   * Parameters by name, a list: [{"pattern": "*.bias", "lr_scale": 1, "weight_decay_scale": 0, "clip": 1, "frozen": false,
   * "optimizer": "adamw"}]; the first pattern that fits counts, * is any text. Default: [].
   */
  public Recipe groups(List<Map<String, Object>> value) {
    return set("groups", value);
  }

  /** The value set by {@link #groups(List)}. */
  public List<Map<String, Object>> groups() {
    return list("groups");
  }

  /** Largest global norm of the gradient; 0 is off. Allowed: [0,inf). Default: 1.0. */
  public Recipe clip(double value) {
    return set("clip", value);
  }

  /** The value set by {@link #clip(double)}. */
  public double clip() {
    return number("clip").doubleValue();
  }

  /** Largest magnitude of an element of the gradient, after clip; 0 is off. Allowed: [0,inf). Default: 0.0. */
  public Recipe clipValue(double value) {
    return set("clip_value", value);
  }

  /** The value set by {@link #clipValue(double)}. */
  public double clipValue() {
    return number("clip_value").doubleValue();
  }

  /**
   * Keeps an exponential moving average of the trained weights beside them: after each successful step average = ema_decay * average +
   * (1 - ema_decay) * weight, the first one copies (torch's AveragedModel with get_ema_multi_avg_fn); 0 is off. Allowed: [0,1).
   * Default: 0.0.
   */
  public Recipe emaDecay(double value) {
    return set("ema_decay", value);
  }

  /** The value set by {@link #emaDecay(double)}. */
  public double emaDecay() {
    return number("ema_decay").doubleValue();
  }

  /** Share of activations set to zero while training, at sites that name no rate of their own. Allowed: [0,1). Default: 0.0. */
  public Recipe dropout(double value) {
    return set("dropout", value);
  }

  /** The value set by {@link #dropout(double)}. */
  public double dropout() {
    return number("dropout").doubleValue();
  }

  /**
   * Share of each target that goes evenly to all classes while training (torch's CrossEntropyLoss); the loss that is shown is the one
   * that is trained, evaluations are without. Allowed: [0,1]. Default: 0.0.
   */
  public Recipe labelSmoothing(double value) {
    return set("label_smoothing", value);
  }

  /** The value set by {@link #labelSmoothing(double)}. */
  public double labelSmoothing() {
    return number("label_smoothing").doubleValue();
  }

  /**
   * Adds z_loss * (log sum e^logits)^2 to each target's loss while training, so that logits stay near zero; PaLM (2022) took 1e-4.
   * Allowed: [0,inf). Default: 0.0.
   */
  public Recipe zLoss(double value) {
    return set("z_loss", value);
  }

  /** The value set by {@link #zLoss(double)}. */
  public double zLoss() {
    return number("z_loss").doubleValue();
  }

  /**
   * Activations that backward makes again instead of keeping them, the same bits: of the blocks, of attention, of all outermost
   * scopes, of what fits recompute_budget with the least arithmetic, or of the scopes that patterns match (block.*.mlp,head). Allowed:
   * none blocks attention full auto SCOPES. Default: "none".
   */
  public Recipe recompute(String value) {
    return set("recompute", value);
  }

  /** The value set by {@link #recompute(String)}. */
  public String recompute() {
    return text("recompute");
  }

  /** Bytes of activations that recompute auto is to fit; 0: what the memory limit leaves beside the rest. Allowed: [0,inf). Default: 0. */
  public Recipe recomputeBudget(long value) {
    return set("recompute_budget", value);
  }

  /** The value set by {@link #recomputeBudget(long)}. */
  public long recomputeBudget() {
    return number("recompute_budget").longValue();
  }

  /**
   * The command line ends a run after so many evaluations in a row whose validation loss was no improvement; 0 is off, and a host that
   * evaluates by itself stops by itself. Allowed: [0,inf). Default: 0.
   */
  public Recipe earlyStoppingPatience(long value) {
    return set("early_stopping_patience", value);
  }

  /** The value set by {@link #earlyStoppingPatience(long)}. */
  public long earlyStoppingPatience() {
    return number("early_stopping_patience").longValue();
  }

  /**
   * What the validation loss must fall by, below the best one so far, to be an improvement: by more than this. Allowed: [0,inf).
   * Default: 0.0.
   */
  public Recipe earlyStoppingMinDelta(double value) {
    return set("early_stopping_min_delta", value);
  }

  /** The value set by {@link #earlyStoppingMinDelta(double)}. */
  public double earlyStoppingMinDelta() {
    return number("early_stopping_min_delta").doubleValue();
  }

  /**
   * Measure the gradient noise scale (McCandlish et al. 2018), the batch in sequences above which larger ones stop paying, from the
   * first micro-batch's gradient and the whole step's; needs 2 micro-batches a step or more, and reads each gradient once more.
   * Default: false.
   */
  public Recipe gradientNoiseScale(boolean value) {
    return set("gradient_noise_scale", value);
  }

  /** The value set by {@link #gradientNoiseScale(boolean)}. */
  public boolean gradientNoiseScale() {
    return yes("gradient_noise_scale");
  }

  /**
   * A step whose loss or gradients are not finite is run again in a checking mode and ends as an error that names the op, scope,
   * tensor, index, micro-batch and rank where it began; an overflow that a dynamic loss scale can still answer is skipped as ever.
   * Default: false.
   */
  public Recipe findNan(boolean value) {
    return set("find_nan", value);
  }

  /** The value set by {@link #findNan(boolean)}. */
  public boolean findNan() {
    return yes("find_nan");
  }

  /**
   * Successful steps after which what only makes later calls quicker is given back, as st_context_trim does, each time; 0 is never.
   * Allowed: [0,inf). Default: 0.
   */
  public Recipe trimEvery(long value) {
    return set("trim_every", value);
  }

  /** The value set by {@link #trimEvery(long)}. */
  public long trimEvery() {
    return number("trim_every").longValue();
  }

  /** Measure the tiles of the products before the first step; changes speed, no bit. Default: false. */
  public Recipe tune(boolean value) {
    return set("tune", value);
  }

  /** The value set by {@link #tune(boolean)}. */
  public boolean tune() {
    return yes("tune");
  }

  /**
   * What multiplies: own, or auto: of a step's fp32 products each by the fastest of own kernels, OpenBLAS, MKL and oneDNN, where they
   * are, measured before the first step; a library changes the bits. Allowed: own auto. Default: "own".
   */
  public Recipe gemmLibrary(String value) {
    return set("gemm_library", value);
  }

  /** The value set by {@link #gemmLibrary(String)}. */
  public String gemmLibrary() {
    return text("gemm_library");
  }

  /** Of initialisation, data order and dropout. Allowed: [0,inf). Default: 0. */
  public Recipe seed(long value) {
    return set("seed", value);
  }

  /** The value set by {@link #seed(long)}. */
  public long seed() {
    return number("seed").longValue();
  }
}
