#include "recipe/ds_config.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/heap.h"
#include "base/json_line.h"
#include "base/text.h"
#include "recipe/ds_optimizer.h"
#include "recipe/ds_scheduler.h"
#include "recipe/ds_section.h"

namespace st {
namespace {

constexpr int64_t kMostCount = int64_t{1} << 40;  // rows, steps; products of two stay far from overflow where they are compared

std::string joined(const std::vector<std::string>& words) {
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : ", ") + word;
  return all;
}

/// train_batch_size = train_micro_batch_size_per_gpu x gradient_accumulation_steps x ranks; two of them give the third for one rank, and
/// where the accumulation is not given it is 1. The total is that of any number of ranks, which share its micro-batches.
void read_batch(DsSection& file, DsRecipe& recipe) {
  constexpr const char *kTotal = "train_batch_size", *kMicro = "train_micro_batch_size_per_gpu", *kSteps = "gradient_accumulation_steps";
  const auto total = file.whole(kTotal, 1, kMostCount);
  auto micro = file.whole(kMicro, 1, kMostCount), steps = file.whole(kSteps, 1, kMostCount);
  if (total && micro && !steps) {
    ds_check(*total % *micro == 0, {kTotal, " ", *total, " is not a whole multiple of ", kMicro, " ", *micro, ": ", *total, " / ", *micro,
                                    " = ", static_cast<double>(*total) / static_cast<double>(*micro)});
    steps = *total / *micro;
  }
  if (total && !micro) {
    const int64_t parts = steps.value_or(1);
    ds_check(*total % parts == 0, {kTotal, " ", *total, " is not a whole multiple of ", kSteps, " ", parts, ": ", *total, " / ", parts,
                                   " = ", static_cast<double>(*total) / static_cast<double>(parts)});
    micro = *total / parts;
  }
  if (total) {
    if (!steps) steps = 1;
    const bool holds = *steps <= kMostCount / *micro && *total % (*micro * *steps) == 0;
    ds_check(holds,
             {kTotal, " ", *total, " is not ", kMicro, " ", *micro, " x ", kSteps, " ", *steps, " x ranks, a multiple of ",
              static_cast<double>(*micro) * static_cast<double>(*steps), "; leave one of the three out, it then follows from the others"});
    if (const int64_t ranks = *total / (*micro * *steps); ranks > 1)
      recipe.notes.push_back(text(kTotal, " ", *total, " is ", kMicro, " ", *micro, " x ", kSteps, " ", *steps, " x ", ranks,
                                  " ranks; other numbers of ranks share the same micro-batches"));
  }
  if (micro) recipe.set("batch", std::to_string(*micro));
  if (total)
    recipe.set("micro_batches", std::to_string(*total / *micro));
  else if (steps)
    recipe.set("accumulate", std::to_string(*steps));
}

void read_fp16(DsSection& fp16, bool enabled, DsRecipe& recipe, std::vector<std::string>& meaningless) {
  const double scale = fp16.number("loss_scale").value_or(0);  // 0: dynamic
  const auto power = fp16.whole("initial_scale_power", 0, 126), window = fp16.whole("loss_scale_window", 1, kMostCount);
  const auto hysteresis = fp16.whole("hysteresis", 1, kMostCount);
  const bool consecutive = fp16.flag("consecutive_hysteresis", false);
  const double least = fp16.number("min_loss_scale").value_or(1);
  ds_require(!fp16.flag("fp16_master_weights_and_grads", false),
             {fp16.name_of("fp16_master_weights_and_grads"),
              " is not supported: master weights are fp32; leave it out, and use data_types.grad_accum_dtype for 16-bit gradients"});
  fp16.skip({"auto_cast"}, meaningless);
  fp16.finish();
  if (!enabled) return;
  const double first = std::ldexp(1.0, static_cast<int>(power.value_or(16)));
  ds_check(scale != 0 || first >= least, {fp16.name_of("initial_scale_power"), " ", power.value_or(16), " makes an initial loss scale of ",
                                          first, ", which is below min_loss_scale ", least});
  recipe.set("precision", "\"fp16\"");
  recipe.set("loss_scale", json_of(scale));
  recipe.set("loss_scale_initial", json_of(first));
  recipe.set("loss_scale_growth_interval", std::to_string(window.value_or(1000)));
  recipe.set("loss_scale_hysteresis", std::to_string(hysteresis.value_or(2)));
  recipe.set("loss_scale_consecutive_hysteresis", consecutive ? "true" : "false");
  recipe.set("loss_scale_minimum", json_of(least));
}

void read_precision(DsSection& file, DsRecipe& recipe, std::vector<std::string>& meaningless) {
  DsSection fp16 = file.section("fp16"), old = file.section("bfloat16"), now = file.section("bf16");
  ds_check(!old.is_there() || !now.is_there(), {"bf16 and bfloat16 are the same section; give only bf16"});
  DsSection& bf16 = old.is_there() ? old : now;
  const bool is_fp16 = fp16.flag("enabled", false), is_bf16 = bf16.flag("enabled", false);
  ds_check(!is_fp16 || !is_bf16, {"fp16.enabled and ", bf16.name_of("enabled"), " are both true; enable one of the two"});
  read_fp16(fp16, is_fp16, recipe, meaningless);
  for (const char* key : {"bf16_master_weights_and_grads", "bf16_optimizer_states"})
    ds_require(!bf16.flag(key, false),
               {bf16.name_of(key), " is not supported: master weights, gradients and moments are fp32; leave it out"});
  bf16.skip({"immediate_grad_update", "check_grad_overflow"}, meaningless);
  bf16.finish();
  if (is_bf16) recipe.set("precision", "\"bf16\"");
}

struct DsOffload {
  bool is_there = false;
  std::string folder;  // of an nvme
};

DsOffload read_offload(DsSection& zero, const char* key, int64_t stage, int64_t least_stage) {
  DsSection offload = zero.section(key);
  const std::string device = offload.word("device").value_or("none");
  ds_check(device == "none" || device == "cpu" || device == "nvme",
           {offload.name_of("device"), " must be none, cpu or nvme, got \"", device, "\""});
  ds_check(device == "none" || stage >= least_stage, {offload.name_of("device"), " ", device, " needs zero_optimization.stage ",
                                                      least_stage, least_stage < 3 ? " or more" : "", ", got ", stage});
  const auto path = offload.word("nvme_path");
  ds_check(path.has_value() || device != "nvme", {offload.name_of("nvme_path"), " is missing, which device nvme needs; name a folder"});
  offload.skip({"pin_memory", "buffer_count", "buffer_size", "max_in_cpu", "fast_init", "pipeline", "pipeline_read", "pipeline_write",
                "ratio", "super_offload", "cpuadam_cores_perc"});
  offload.finish();
  return {device != "none", device == "nvme" ? *path : ""};
}

/// A device cpu has in host memory what is offloaded there; an nvme's folder is ours, which parameters share with the optimizer.
void set_offload(const DsOffload& optimizer, const DsOffload& parameters, DsRecipe& recipe) {
  const std::string &first = optimizer.folder, &second = parameters.folder;
  ds_check(first.empty() || second.empty() || first == second, {"zero_optimization.offload_optimizer.nvme_path is ", first,
                                                                " and offload_param.nvme_path is ", second, "; give both the same folder"});
  if (!optimizer.is_there && !parameters.is_there) return;
  const bool moves_parameters = parameters.is_there && (!second.empty() || first.empty());
  recipe.set("offload", moves_parameters ? "\"parameters\"" : "\"optimizer\"");
  std::string folder;
  append_json_string(folder, second.empty() ? first : second);
  if (folder.size() > 2) recipe.set("offload_folder", folder);
  if (!second.empty() && first.empty())
    recipe.notes.push_back(text("the folder of zero_optimization.offload_param is also used for the optimizer's state: ", second));
}

void read_zero(DsSection& file, DsRecipe& recipe, std::vector<std::string>& meaningless) {
  if (const Json* old = file.find("zero_optimization"); old != nullptr && old->is(Json::Kind::boolean)) {
    if (old->boolean()) recipe.set("zero", "1");  // before there were stages
    return;
  }
  DsSection zero = file.section("zero_optimization");
  const int64_t stage = zero.whole("stage", 0, 3).value_or(0);
  std::vector<std::string> asked;
  if (stage > 0) asked.push_back(text("stage ", stage));
  if (stage > 0) recipe.set("zero", std::to_string(stage));
  DsOffload optimizer = read_offload(zero, "offload_optimizer", stage, 1), parameters = read_offload(zero, "offload_param", stage, 3);
  for (const auto& [old, offload] : {std::pair{"cpu_offload", &optimizer}, {"cpu_offload_params", &parameters}}) {
    if (!zero.flag(old, false)) continue;
    ds_check(stage > 0, {zero.name_of(old), " needs zero_optimization.stage 1 or more, got ", stage});
    offload->is_there = true;
  }
  set_offload(optimizer, parameters, recipe);
  for (const char* size : {"allgather_bucket_size", "reduce_bucket_size", "stage3_max_live_parameters", "stage3_max_reuse_distance",
                           "stage3_prefetch_bucket_size", "stage3_param_persistence_threshold", "sub_group_size"})
    if (zero.whole(size, 0, int64_t{1} << 62)) asked.emplace_back(size);
  for (const char* yes : {"allgather_partitions", "reduce_scatter", "overlap_comm", "contiguous_gradients", "round_robin_gradients"})
    if (zero.flag(yes, false)) asked.emplace_back(yes);
  zero.skip({"elastic_checkpoint",
             "grad_hooks",
             "ignore_unused_parameters",
             "legacy_stage1",
             "load_from_fp32_weights",
             "use_multi_rank_bucket_allreduce",
             "stage3_gather_16bit_weights_on_model_save",
             "stage3_gather_fp16_weights_on_model_save",
             "stage3_model_persistence_threshold",
             "stage3_param_persistence_size",
             "param_persistence_threshold",
             "model_persistence_threshold",
             "max_live_parameters",
             "max_reuse_distance",
             "prefetch_bucket_size",
             "gather_16bit_weights_on_model_save",
             "stage3_use_all_reduce_for_fetch_params",
             "use_all_reduce_for_fetch_params",
             "stage3_module_granularity_threshold",
             "module_granularity_threshold",
             "zero_hpz_partition_size",
             "memory_efficient_linear",
             "pipeline_loading_checkpoint",
             "override_module_apply",
             "log_trace_cache_warnings",
             "cpu_offload_use_pin_memory",
             "enable_sanity_checks",
             "mics_hierarchical_params_gather",
             "mics_shard_size",
             "save_muon_momentum_buffer_in_memory"},
            meaningless);
  for (const char* key : {"zenflow", "zeropp_loco_param"})
    ds_require(zero.find(key) == nullptr,
               {zero.name_of(key), " is a DeepSpeed key that changes results and is not supported; use only zero_optimization.stage"});
  for (const char* key : {"zero_quantized_weights", "zero_quantized_gradients", "zero_quantized_nontrainable_weights"})
    ds_require(!zero.flag(key, false), {zero.name_of(key), " is a DeepSpeed key that changes results and is not supported; leave it out"});
  zero.finish();
  if (!asked.empty())
    recipe.notes.push_back(text("zero_optimization (", joined(asked),
                                ") is accepted; zero has the stage, which takes effect with several ranks; bucket and overlap "
                                "control their collectives"));
}

/// DeepSpeed accepts capitals; its older versions write bfp16.
std::optional<std::string> dtype_of(DsSection& section, const char* key) {
  const std::optional<std::string> given = section.word(key);
  if (!given) return std::nullopt;
  std::string dtype = *given;
  for (char& letter : dtype)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  if (dtype == "bfp16") dtype = "bf16";
  ds_check(dtype == "fp32" || dtype == "bf16" || dtype == "fp16",
           {section.name_of(key), " must be fp32, bf16 or fp16, got \"", *given, "\""});
  return dtype;
}

/// Gradients that are added in 16 bits are sent so too, unless the file says otherwise.
void read_gradient_dtypes(DsSection& file, DsRecipe& recipe) {
  DsSection types = file.section("data_types");
  const auto sums = dtype_of(types, "grad_accum_dtype"), given = dtype_of(file, "communication_data_type");
  types.finish();
  const std::string added = sums.value_or("fp32"), sent = given.value_or(added);
  ds_check(added == "fp32" || added == sent, {types.name_of("grad_accum_dtype"), " must be fp32 or that of communication_data_type, ", sent,
                                              ", got ", added, "; leave one of them out"});
  if (sent != "fp32") recipe.set("gradient_dtype", text('"', sent, '"'));
  if (added != "fp32") recipe.set("accumulate_dtype", text('"', added, '"'));
}

/// 0 is off, there and here. Old files have the norm among the optimizer's params.
void read_clip(DsSection& file, DsRecipe& recipe) {
  const auto clip = file.number("gradient_clipping");
  DsSection optimizer = file.section("optimizer"), params = optimizer.section("params");
  const auto old = params.number("max_grad_norm");
  ds_check(!clip || !old || *clip == *old, {"gradient_clipping is ", clip.value_or(0), " and ", params.name_of("max_grad_norm"), " is ",
                                            old.value_or(0), "; give only gradient_clipping"});
  if (clip || old || !file.is_auto("gradient_clipping")) recipe.set("clip", json_of(clip.value_or(old.value_or(0))));
}

/// DeepSpeed checkpoints what the model's code names; here the same is done with the blocks, and the bits are equal.
void read_recompute(DsSection& file, DsRecipe& recipe, std::vector<std::string>& meaningless) {
  DsSection section = file.section("activation_checkpointing");
  bool is_wanted = section.whole("number_checkpoints", 0, kMostCount).value_or(0) > 0;
  for (const char* key : {"partition_activations", "cpu_checkpointing", "contiguous_memory_optimization"})
    is_wanted = section.flag(key, false) || is_wanted;
  section.skip({"synchronize_checkpoint_boundary", "profile"}, meaningless);
  section.finish();
  if (is_wanted) recipe.set("recompute", "\"blocks\"");
}

/// Sections that train otherwise when they are enabled.
void refuse_methods(DsSection& file, std::vector<std::string>& meaningless) {
  struct Method {
    const char *key, *instead;
  };
  for (const Method& method : {Method{"amp", "fp16 or bf16"},
                               {"torch_autocast", "fp16 or bf16"},
                               {"sparse_attention", "dense attention"},
                               {"progressive_layer_drop", "dropout"},
                               {"curriculum_learning", "data in the desired order"},
                               {"data_efficiency", "data in the desired order"},
                               {"quantize_training", "bf16"},
                               {"compression_training", "bf16"},
                               {"elasticity", "train_batch_size"},
                               {"eigenvalue", "nothing"}}) {
    const Json* section = file.find(method.key);
    if (section == nullptr) continue;
    const Json* enabled = section->find("enabled");
    const bool is_off = section->is(Json::Kind::object) && (section->members().empty() || (enabled != nullptr && !enabled->boolean()));
    ds_require(is_off, {method.key, " is not supported; use ", method.instead, " and leave it out"});
    meaningless.emplace_back(method.key);
  }
}

}  // namespace

const std::vector<std::string>& ds_config_keys() {
  static const auto keys = once_for_the_process([] {
    return words_of(
        "train_batch_size train_micro_batch_size_per_gpu gradient_clipping zero_optimization activation_checkpointing steps_per_print "
        "wall_clock_breakdown");
  });
  return keys;
}

bool is_ds_config(const Json& json) {
  if (!json.is(Json::Kind::object)) return false;
  for (const std::string& key : ds_config_keys())
    if (json.find(key) != nullptr) return true;
  return std::ranges::any_of(std::initializer_list<const char*>{"fp16", "bf16", "bfloat16", "optimizer", "scheduler"},
                             [&](const char* key) {
                               const Json* section = json.find(key);
                               return section != nullptr && section->is(Json::Kind::object);
                             });
}

DsRecipe read_ds_config(const Json& json) {
  DsRecipe recipe;
  std::vector<std::string> meaningless;
  DsSection file("", &json);
  read_batch(file, recipe);
  const bool has_optimizer = file.find("optimizer") != nullptr, has_scheduler = file.find("scheduler") != nullptr;
  // An optimizer without a scheduler runs at its learning rate from the first step on.
  if (has_optimizer && !has_scheduler && !file.is_auto("scheduler")) recipe.set("warmup", "0");
  const double lr = read_ds_optimizer(file, recipe);
  read_ds_scheduler(file, lr, recipe);
  read_precision(file, recipe, meaningless);
  read_gradient_dtypes(file, recipe);
  read_clip(file, recipe);
  read_zero(file, recipe, meaningless);
  read_recompute(file, recipe, meaningless);
  refuse_methods(file, meaningless);
  file.skip({"steps_per_print",
             "wall_clock_breakdown",
             "memory_breakdown",
             "dump_state",
             "flops_profiler",
             "comms_logger",
             "comms_config",
             "tensorboard",
             "wandb",
             "comet",
             "csv_monitor",
             "monitor_config",
             "autotuning",
             "aio",
             "checkpoint",
             "nebula",
             "hybrid_engine",
             "seq_parallel_communication_data_type",
             "fp32_allreduce",
             "prescale_gradients",
             "gradient_predivide_factor",
             "sparse_gradients",
             "disable_allgather",
             "zero_allow_untested_optimizer",
             "zero_force_ds_cpu_optimizer",
             "graph_harvesting",
             "use_node_local_storage",
             "load_universal_checkpoint",
             "pipeline",
             "tensor_parallel",
             "compile",
             "cuda_visible_devices",
             "dataloader_drop_last",
             "sequence_parallel_size",
             "timers",
             "use_data_before_expert_parallelism"},
            meaningless);
  file.skip_comments(meaningless);
  file.finish();
  if (!meaningless.empty()) recipe.notes.push_back(text("keys without effect here: ", joined(meaningless)));
  return recipe;
}

}  // namespace st
