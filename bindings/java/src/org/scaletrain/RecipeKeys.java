package org.scaletrain;

import java.util.List;
import java.util.Map;

/**
 * A typed setter and getter for each recipe key. A key that is not set has its default.
 *
 * <p>Generated from {@code runtime/recipe/recipe.def} by {@code bindings/recipe_keys.py}: edit the row, not this file.
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

  /**
   * Where to compute: auto, on the device of the model's context, for the command line cpu; cpu is fast; reference is slow and
   * accumulates in double; NAME or NAME:INDEX is the device of a plug-in, which `scaletrain info` lists. Allowed: auto cpu cuda
   * reference NAME NAME:INDEX. Default: "auto".
   */
  public Recipe device(String value) {
    return set("device", value);
  }

  /** The value set by {@link #device(String)}. */
  public String device() {
    return text("device");
  }

  /**
   * Element type of matrix products and activations in training; bf16 and fp16 sum in fp32 and keep fp32 master weights, gradients and
   * moments; fp16 scales the loss; prediction and evaluation run in fp32. Allowed: fp32 bf16 fp16. Default: "fp32".
   */
  public Recipe precision(String value) {
    return set("precision", value);
  }

  /** The value set by {@link #precision(String)}. */
  public String precision() {
    return text("precision");
  }

  /**
   * Bf16 and fp16: scopes that still compute in fp32, nested scopes included, as patterns (block.0.*,head). Allowed: none SCOPES.
   * Default: "none".
   */
  public Recipe fp32Scopes(String value) {
    return set("fp32_scopes", value);
  }

  /** The value set by {@link #fp32Scopes(String)}. */
  public String fp32Scopes() {
    return text("fp32_scopes");
  }

  /**
   * Element type of the residual stream in training: of what embeddings give, blocks add to and norms take and give, and of its
   * gradients; fp32, or that of precision, which halves the activations kept for recomputed blocks and the messages between stages;
   * norms still sum, and keep their weights, in fp32. Allowed: fp32 bf16 fp16. Default: "fp32".
   */
  public Recipe residualDtype(String value) {
    return set("residual_dtype", value);
  }

  /** The value set by {@link #residualDtype(String)}. */
  public String residualDtype() {
    return text("residual_dtype");
  }

  /** Fp16: factor on the loss before backward; 0: dynamic, set by the loss_scale_ keys. Allowed: [0,inf). Default: 0.0. */
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

  /**
   * Factor on the dynamic loss scale after loss_scale_growth_interval steps in a row without a skipped one. Allowed: (1,inf). Default:
   * 2.0.
   */
  public Recipe lossScaleGrowthFactor(double value) {
    return set("loss_scale_growth_factor", value);
  }

  /** The value set by {@link #lossScaleGrowthFactor(double)}. */
  public double lossScaleGrowthFactor() {
    return number("loss_scale_growth_factor").doubleValue();
  }

  /** Factor on the dynamic loss scale after a skipped step. Allowed: (0,1). Default: 0.5. */
  public Recipe lossScaleBackoffFactor(double value) {
    return set("loss_scale_backoff_factor", value);
  }

  /** The value set by {@link #lossScaleBackoffFactor(double)}. */
  public double lossScaleBackoffFactor() {
    return number("loss_scale_backoff_factor").doubleValue();
  }

  /** Steps in a row without a skipped one before the dynamic loss scale grows. Allowed: [1,inf). Default: 2000. */
  public Recipe lossScaleGrowthInterval(long value) {
    return set("loss_scale_growth_interval", value);
  }

  /** The value set by {@link #lossScaleGrowthInterval(long)}. */
  public long lossScaleGrowthInterval() {
    return number("loss_scale_growth_interval").longValue();
  }

  /**
   * Number of the skipped step from which the dynamic loss scale backs off; the count restarts when the scale grows. Allowed: [1,inf).
   * Default: 1.
   */
  public Recipe lossScaleHysteresis(long value) {
    return set("loss_scale_hysteresis", value);
  }

  /** The value set by {@link #lossScaleHysteresis(long)}. */
  public long lossScaleHysteresis() {
    return number("loss_scale_hysteresis").longValue();
  }

  /** Restart the count of loss_scale_hysteresis after every step that was not skipped. Default: false. */
  public Recipe lossScaleConsecutiveHysteresis(boolean value) {
    return set("loss_scale_consecutive_hysteresis", value);
  }

  /** The value set by {@link #lossScaleConsecutiveHysteresis(boolean)}. */
  public boolean lossScaleConsecutiveHysteresis() {
    return yes("loss_scale_consecutive_hysteresis");
  }

  /** Lower limit of the dynamic loss scale. Allowed: (0,inf). Default: 1.0. */
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
   * Sequences per step over all ranks; if set, accumulate follows from it and batch; 0: batch times micro-batches. Allowed:
   * [0,1000000]. Default: 0.
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

  /** Micro-batches per step over all ranks, an alternative to accumulate; 0: follows from accumulate. Allowed: [0,inf). Default: 0. */
  public Recipe microBatches(long value) {
    return set("micro_batches", value);
  }

  /** The value set by {@link #microBatches(long)}. */
  public long microBatches() {
    return number("micro_batches").longValue();
  }

  /**
   * Ranks of all kinds: stages times data-parallel ranks, which share the micro-batches of a step, times the tensor degree; without a
   * communicator they run as threads of this process, at most 256; 1: as many as stages times the tensor degree. Allowed: [1,1000000].
   * Default: 1.
   */
  public Recipe ranks(long value) {
    return set("ranks", value);
  }

  /** The value set by {@link #ranks(long)}. */
  public long ranks() {
    return number("ranks").longValue();
  }

  /**
   * Pipeline stages: each has some of the model's outermost scopes, and micro-batches pass through them; results are bitwise equal.
   * Allowed: [1,256]. Default: 1.
   */
  public Recipe stages(long value) {
    return set("stages", value);
  }

  /** The value set by {@link #stages(long)}. */
  public long stages() {
    return number("stages").longValue();
  }

  /**
   * Tensor degree: so many ranks share each matrix product, attention head by head, and the rows between (Shoeybi et al. 2019,
   * Korthikanti et al. 2022); results are those of one rank within rounding, bitwise equal at each degree. Allowed: [1,256]. Default:
   * 1.
   */
  public Recipe tensor(long value) {
    return set("tensor", value);
  }

  /** The value set by {@link #tensor(long)}. */
  public long tensor() {
    return number("tensor").longValue();
  }

  /**
   * Order in which stages compute micro-batches: 1f1b (PipeDream-Flush), gpipe, interleaved (Narayanan et al. 2021), zb-h1 and zb-v
   * (zero bubble, Qi et al. 2023), or a table in PyTorch's notation, as st_pipeline_create takes it: a line for each stage with cells
   * such as 0F0,0F1,0B0,0B1, for the micro-batches of a step on a data rank; changes speed and memory, not results. Allowed: 1f1b
   * gpipe interleaved zb-h1 zb-v TABLE. Default: "1f1b".
   */
  public Recipe schedule(String value) {
    return set("schedule", value);
  }

  /** The value set by {@link #schedule(String)}. */
  public String schedule() {
    return text("schedule");
  }

  /** Interleaved: parts of the model on each stage; 0: 2 for interleaved and zb-v, else 1. Allowed: [0,64]. Default: 0. */
  public Recipe stageChunks(long value) {
    return set("stage_chunks", value);
  }

  /** The value set by {@link #stageChunks(long)}. */
  public long stageChunks() {
    return number("stage_chunks").longValue();
  }

  /**
   * Outermost scopes with which the parts of the model after the first one begin, separated by commas (block.3,block.6); empty: parts
   * of equal cost. Default: "".
   */
  public Recipe stageStarts(String value) {
    return set("stage_starts", value);
  }

  /** The value set by {@link #stageStarts(String)}. */
  public String stageStarts() {
    return text("stage_starts");
  }

  /**
   * When ranks reduce gradients: micro, after each micro-batch, so that results do not depend on the number of ranks; or step, once
   * per step, with less traffic. Allowed: micro step. Default: "micro".
   */
  public Recipe reduce(String value) {
    return set("reduce", value);
  }

  /** The value set by {@link #reduce(String)}. */
  public String reduce() {
    return text("reduce");
  }

  /**
   * ZeRO stage (Rajbhandari et al. 2020): 0 shards nothing, 1 the optimizer state, 2 also gradients, 3 also parameters, which each
   * scope gathers before use; results are bitwise equal; no effect with one rank. Allowed: [0,3]. Default: 0.
   */
  public Recipe zero(long value) {
    return set("zero", value);
  }

  /** The value set by {@link #zero(long)}. */
  public long zero() {
    return number("zero").longValue();
  }

  /**
   * Keeps tensors outside device memory: the optimizer state, or the fp32 parameters too (until the model is freed), or the gradients
   * as well; in offload_folder or, without one, in host memory, where device cpu keeps them anyway; results are bitwise equal.
   * Allowed: none optimizer parameters gradients. Default: "none".
   */
  public Recipe offload(String value) {
    return set("offload", value);
  }

  /** The value set by {@link #offload(String)}. */
  public String offload() {
    return text("offload");
  }

  /**
   * Offload: folder on a local disk for unnamed files, reserved up front, freed when the process ends and counted as file, not as
   * memory; empty: host memory. Refused on a device of its own memory. Default: "".
   */
  public Recipe offloadFolder(String value) {
    return set("offload_folder", value);
  }

  /** The value set by {@link #offloadFolder(String)}. */
  public String offloadFolder() {
    return text("offload_folder");
  }

  /**
   * Offload: bytes of the host's pinned memory that each rank may take in place of a device's; a trainer or plan that needs more is
   * refused with both numbers. 0: what the host has available. No effect on a device that computes in the host's memory. Allowed:
   * [0,inf). Default: 0.
   */
  public Recipe offloadBudget(long value) {
    return set("offload_budget", value);
  }

  /** The value set by {@link #offloadBudget(long)}. */
  public long offloadBudget() {
    return number("offload_budget").longValue();
  }

  /**
   * Element type in which ranks send gradients, which are added in accumulate_dtype: each micro-batch's gradient (reduce step: each
   * rank's sum) is rounded to it, and the step's sum once more, on one rank too; fp16 skips a step with a gradient beyond 65504, and
   * scales the loss only with precision fp16. Allowed: fp32 bf16 fp16. Default: "fp32".
   */
  public Recipe gradientDtype(String value) {
    return set("gradient_dtype", value);
  }

  /** The value set by {@link #gradientDtype(String)}. */
  public String gradientDtype() {
    return text("gradient_dtype");
  }

  /**
   * Element type in which gradients are kept and added over micro-batches, ranks and uses of a tied weight: fp32, or that of
   * gradient_dtype, which halves their memory; every addition is rounded to it, in one order on any number of ranks, so small
   * gradients of many micro-batches are lost. Allowed: fp32 bf16 fp16. Default: "fp32".
   */
  public Recipe accumulateDtype(String value) {
    return set("accumulate_dtype", value);
  }

  /** The value set by {@link #accumulateDtype(String)}. */
  public String accumulateDtype() {
    return text("accumulate_dtype");
  }

  /** Bytes of gradients per collective; changes speed, not results. Allowed: [1,inf). Default: 26214400. */
  public Recipe bucket(long value) {
    return set("bucket", value);
  }

  /** The value set by {@link #bucket(long)}. */
  public long bucket() {
    return number("bucket").longValue();
  }

  /**
   * Run collectives (gradients, and parameters under zero 3) on a second thread while the rank computes; changes speed, not results. A
   * device of its own memory does not overlap with offload gradients, nor with offload parameters and zero 3. Allowed: on off.
   * Default: "on".
   */
  public Recipe overlap(String value) {
    return set("overlap", value);
  }

  /** The value set by {@link #overlap(String)}. */
  public String overlap() {
    return text("overlap");
  }

  /**
   * Ordered: the library adds what ranks exchange, in rank order, so that results depend neither on the transport nor on the number of
   * ranks; fast: NCCL adds, in its own order and in the element type that is sent. Results then depend on NCCL's version and choices
   * and on the number of ranks; all ranks have the same. fast needs ranks that are processes with an NVIDIA device each; no effect
   * with one rank. Allowed: ordered fast. Default: "ordered".
   */
  public Recipe collectives(String value) {
    return set("collectives", value);
  }

  /** The value set by {@link #collectives(String)}. */
  public String collectives() {
    return text("collectives");
  }

  /**
   * Compare the weights of all ranks every this many steps and fail with the rank and tensor that differ; 0: off, except that ranks in
   * separate processes compare once, before their first step. Allowed: [0,inf). Default: 0.
   */
  public Recipe replicaCheck(long value) {
    return set("replica_check", value);
  }

  /** The value set by {@link #replicaCheck(long)}. */
  public long replicaCheck() {
    return number("replica_check").longValue();
  }

  /** Threads per rank; 0: the cores of this process divided by its ranks. Allowed: [0,4096]. Default: 0. */
  public Recipe threads(long value) {
    return set("threads", value);
  }

  /** The value set by {@link #threads(long)}. */
  public long threads() {
    return number("threads").longValue();
  }

  /**
   * Update rule; a key below that is not given takes this optimizer's default (PyTorch's; for lion the paper's). Allowed: adamw adam
   * adamw-8bit sgd adafactor lion rmsprop adagrad muon. Default: "adamw".
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
   * Length of linear, cosine, polynomial, wsd and one_cycle in successful steps, warm-up included; 0: unset, and the command line uses
   * --steps. Allowed: [0,inf). Default: 0.
   */
  public Recipe lrSteps(long value) {
    return set("lr_steps", value);
  }

  /** The value set by {@link #lrSteps(long)}. */
  public long lrSteps() {
    return number("lr_steps").longValue();
  }

  /**
   * Final learning rate of linear, cosine and polynomial, lower limit of inverse_sqrt, end of the decay of wsd. Allowed: [0,inf).
   * Default: 0.0.
   */
  public Recipe lrMin(double value) {
    return set("lr_min", value);
  }

  /** The value set by {@link #lrMin(double)}. */
  public double lrMin() {
    return number("lr_min").doubleValue();
  }

  /** Polynomial: exponent in lr_min + (lr - lr_min) * (1 - share of the steps)^lr_power. Allowed: (0,inf). Default: 1.0. */
  public Recipe lrPower(double value) {
    return set("lr_power", value);
  }

  /** The value set by {@link #lrPower(double)}. */
  public double lrPower() {
    return number("lr_power").doubleValue();
  }

  /** Cosine: number of cycles, each starting at lr again. Allowed: [1,1000000]. Default: 1. */
  public Recipe lrCycles(long value) {
    return set("lr_cycles", value);
  }

  /** The value set by {@link #lrCycles(long)}. */
  public long lrCycles() {
    return number("lr_cycles").longValue();
  }

  /** Cosine: each cycle is this many times as long as the previous one. Allowed: [1,1000]. Default: 1. */
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

  /** One_cycle: share of the steps in which the rate rises. Allowed: (0,1). Default: 0.3. */
  public Recipe lrPctStart(double value) {
    return set("lr_pct_start", value);
  }

  /** The value set by {@link #lrPctStart(double)}. */
  public double lrPctStart() {
    return number("lr_pct_start").doubleValue();
  }

  /** One_cycle starts at lr / lr_div_factor. Allowed: (0,inf). Default: 25.0. */
  public Recipe lrDivFactor(double value) {
    return set("lr_div_factor", value);
  }

  /** The value set by {@link #lrDivFactor(double)}. */
  public double lrDivFactor() {
    return number("lr_div_factor").doubleValue();
  }

  /** One_cycle ends at its first rate / lr_final_div_factor. Allowed: (0,inf). Default: 10000.0. */
  public Recipe lrFinalDivFactor(double value) {
    return set("lr_final_div_factor", value);
  }

  /** The value set by {@link #lrFinalDivFactor(double)}. */
  public double lrFinalDivFactor() {
    return number("lr_final_div_factor").doubleValue();
  }

  /** Table: "0:1e-3 100:5e-4" sets the learning rate from successful step 0 and from 100, without interpolation. Default: "". */
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
   * Added to the square root of the second moment; adafactor: lower limit of that root, 0: the machine epsilon. Allowed: [0,inf).
   * Default: 1e-08.
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

  /** Momentum of sgd, rmsprop and muon. Allowed: [0,1). Default: 0.0. */
  public Recipe momentum(double value) {
    return set("momentum", value);
  }

  /** The value set by {@link #momentum(double)}. */
  public double momentum() {
    return number("momentum").doubleValue();
  }

  /** Dampening of sgd's momentum. Allowed: [0,1]. Default: 0.0. */
  public Recipe dampening(double value) {
    return set("dampening", value);
  }

  /** The value set by {@link #dampening(double)}. */
  public double dampening() {
    return number("dampening").doubleValue();
  }

  /** Nesterov momentum for sgd and muon. Default: false. */
  public Recipe nesterov(boolean value) {
    return set("nesterov", value);
  }

  /** The value set by {@link #nesterov(boolean)}. */
  public boolean nesterov() {
    return yes("nesterov");
  }

  /** Rmsprop: divide by the standard deviation of the gradient. Default: false. */
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

  /** Adagrad: initial value of the sums of squares. Allowed: [0,inf). Default: 0.0. */
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

  /** Adafactor: lower limit of the parameter's root mean square that scales its update. Allowed: [0,inf). Default: 0.001. */
  public Recipe epsilon2(double value) {
    return set("epsilon2", value);
  }

  /** The value set by {@link #epsilon2(double)}. */
  public double epsilon2() {
    return number("epsilon2").doubleValue();
  }

  /** Adafactor: upper limit of an update's root mean square (the paper's d). Allowed: [1,inf). Default: 1.0. */
  public Recipe clipThreshold(double value) {
    return set("clip_threshold", value);
  }

  /** The value set by {@link #clipThreshold(double)}. */
  public double clipThreshold() {
    return number("clip_threshold").doubleValue();
  }

  /** Muon: Newton-Schulz iterations. Allowed: [0,99]. Default: 5. */
  public Recipe nsSteps(long value) {
    return set("ns_steps", value);
  }

  /** The value set by {@link #nsSteps(long)}. */
  public long nsSteps() {
    return number("ns_steps").longValue();
  }

  /**
   * Muon: factor on the rate, original: sqrt(max(1, rows / columns)); match_rms_adamw: 0.2 sqrt(max(rows, columns)). Allowed: original
   * match_rms_adamw. Default: "original".
   */
  public Recipe adjustLr(String value) {
    return set("adjust_lr", value);
  }

  /** The value set by {@link #adjustLr(String)}. */
  public String adjustLr() {
    return text("adjust_lr");
  }

  /**
   * Settings by parameter name, a list: [{"pattern": "*.bias", "lr_scale": 1, "weight_decay_scale": 0, "clip": 1, "frozen": false,
   * "optimizer": "adamw"}]; the first pattern that matches applies, * matches any text. Default: [].
   */
  public Recipe groups(List<Map<String, Object>> value) {
    return set("groups", value);
  }

  /** The value set by {@link #groups(List)}. */
  public List<Map<String, Object>> groups() {
    return list("groups");
  }

  /** Upper limit of the global gradient norm; 0: off. Allowed: [0,inf). Default: 1.0. */
  public Recipe clip(double value) {
    return set("clip", value);
  }

  /** The value set by {@link #clip(double)}. */
  public double clip() {
    return number("clip").doubleValue();
  }

  /** Upper limit of the magnitude of each gradient element, applied after clip; 0: off. Allowed: [0,inf). Default: 0.0. */
  public Recipe clipValue(double value) {
    return set("clip_value", value);
  }

  /** The value set by {@link #clipValue(double)}. */
  public double clipValue() {
    return number("clip_value").doubleValue();
  }

  /**
   * Keep an exponential moving average of the trained weights: after each successful step average = ema_decay * average + (1 -
   * ema_decay) * weight, the first step copies (torch's AveragedModel with get_ema_multi_avg_fn); 0: off. Allowed: [0,1). Default:
   * 0.0.
   */
  public Recipe emaDecay(double value) {
    return set("ema_decay", value);
  }

  /** The value set by {@link #emaDecay(double)}. */
  public double emaDecay() {
    return number("ema_decay").doubleValue();
  }

  /** Share of activations set to zero in training, at sites without a rate of their own. Allowed: [0,1). Default: 0.0. */
  public Recipe dropout(double value) {
    return set("dropout", value);
  }

  /** The value set by {@link #dropout(double)}. */
  public double dropout() {
    return number("dropout").doubleValue();
  }

  /**
   * Share of each target spread evenly over all classes in training (torch's CrossEntropyLoss); the reported training loss includes
   * it, evaluation does not. Allowed: [0,1]. Default: 0.0.
   */
  public Recipe labelSmoothing(double value) {
    return set("label_smoothing", value);
  }

  /** The value set by {@link #labelSmoothing(double)}. */
  public double labelSmoothing() {
    return number("label_smoothing").doubleValue();
  }

  /**
   * Adds z_loss * (log sum e^logits)^2 to each target's loss in training, which keeps logits near zero; PaLM (2022) used 1e-4.
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
   * Activations that backward recomputes instead of keeping: of blocks, of attention, of all outermost scopes (full), of the cheapest
   * choice that fits recompute_budget (auto), or of scopes by pattern (block.*.mlp,head); results are bitwise equal. Allowed: none
   * blocks attention full auto SCOPES. Default: "none".
   */
  public Recipe recompute(String value) {
    return set("recompute", value);
  }

  /** The value set by {@link #recompute(String)}. */
  public String recompute() {
    return text("recompute");
  }

  /**
   * Bytes of activations that recompute auto may keep; 0: what the memory limit leaves after everything else. Allowed: [0,inf).
   * Default: 0.
   */
  public Recipe recomputeBudget(long value) {
    return set("recompute_budget", value);
  }

  /** The value set by {@link #recomputeBudget(long)}. */
  public long recomputeBudget() {
    return number("recompute_budget").longValue();
  }

  /**
   * The command line ends a run after this many evaluations in a row without a better validation loss; 0: off; a host that runs its
   * own evaluations also stops itself. Allowed: [0,inf). Default: 0.
   */
  public Recipe earlyStoppingPatience(long value) {
    return set("early_stopping_patience", value);
  }

  /** The value set by {@link #earlyStoppingPatience(long)}. */
  public long earlyStoppingPatience() {
    return number("early_stopping_patience").longValue();
  }

  /** A validation loss counts as better if it is below the best one so far by more than this. Allowed: [0,inf). Default: 0.0. */
  public Recipe earlyStoppingMinDelta(double value) {
    return set("early_stopping_min_delta", value);
  }

  /** The value set by {@link #earlyStoppingMinDelta(double)}. */
  public double earlyStoppingMinDelta() {
    return number("early_stopping_min_delta").doubleValue();
  }

  /**
   * Measure the gradient noise scale (McCandlish et al. 2018), the batch in sequences beyond which larger batches stop paying;
   * compares the gradient of the first micro-batch with that of the step, so it needs 2 or more micro-batches per step and reads each
   * gradient once more. Default: false.
   */
  public Recipe gradientNoiseScale(boolean value) {
    return set("gradient_noise_scale", value);
  }

  /** The value set by {@link #gradientNoiseScale(boolean)}. */
  public boolean gradientNoiseScale() {
    return yes("gradient_noise_scale");
  }

  /**
   * Rerun a step whose loss or gradients are not finite in a checking mode and fail with the op, scope, tensor, index, micro-batch and
   * rank where it began; an overflow that a dynamic loss scale can still fix is skipped as usual. Default: false.
   */
  public Recipe findNan(boolean value) {
    return set("find_nan", value);
  }

  /** The value set by {@link #findNan(boolean)}. */
  public boolean findNan() {
    return yes("find_nan");
  }

  /**
   * Release cached memory, as st_context_trim does, every this many successful steps; later calls rebuild it; 0: never. Allowed:
   * [0,inf). Default: 0.
   */
  public Recipe trimEvery(long value) {
    return set("trim_every", value);
  }

  /** The value set by {@link #trimEvery(long)}. */
  public long trimEvery() {
    return number("trim_every").longValue();
  }

  /** Measure tile sizes of matrix products before the first step; changes speed, not results. Default: false. */
  public Recipe tune(boolean value) {
    return set("tune", value);
  }

  /** The value set by {@link #tune(boolean)}. */
  public boolean tune() {
    return yes("tune");
  }

  /**
   * Kernels of matrix products: own, or auto, which takes for each fp32 product of a step the fastest of own kernels and the installed
   * OpenBLAS, MKL and oneDNN, measured before the first step; a library changes result bits. Allowed: own auto. Default: "own".
   */
  public Recipe gemmLibrary(String value) {
    return set("gemm_library", value);
  }

  /** The value set by {@link #gemmLibrary(String)}. */
  public String gemmLibrary() {
    return text("gemm_library");
  }

  /** Seed of initialisation, data order and dropout. Allowed: [0,inf). Default: 0. */
  public Recipe seed(long value) {
    return set("seed", value);
  }

  /** The value set by {@link #seed(long)}. */
  public long seed() {
    return number("seed").longValue();
  }
}
