// scaletrain train: makes the model, its data and a trainer from the options.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>

#include "init_weights.h"
#include "model_choice.h"
#include "progress.h"
#include "stop_signal.h"
#include "train_options.h"
#include "training_run.h"
#include "tuning_warnings.h"

namespace cli {
namespace {

EarlyStopping early_stopping(const Recipe& recipe) {
  const double min_delta = Json::parse(text(st_recipe_get, recipe.get(), "early_stopping_min_delta")).get<double>();
  return {recipe_whole(recipe, "early_stopping_patience"), min_delta};
}

/// Prints a rank's log of a run of several ranks.
void print_rank_log(int32_t level, const char* area, const char* text) {
  constexpr const char* kRank = "RANK";
  const char* rank = std::getenv(kRank);
  std::fprintf(stderr, "rank %s, %s%s: %s\n", rank == nullptr ? "?" : rank, level <= ST_LOG_WARNING ? "warning, " : "", area, text);
}

/// An st_log_fn. Prints which libraries compete and why one does not, keys of a DeepSpeed file or a config.json that have no effect, a
/// schedule that is shorter than the run, and how the devices of ranks exchange.
void print_log(void* user, int32_t level, const char* area, const char* text) {
  if (is_debugging_ranks()) print_rank_log(level, area, text);
  if (std::string_view(area) == "gemm_library") std::printf("library          %s\n", text);
  if (std::string_view(area) == "recipe") std::printf("recipe           %s\n", text);
  if (std::string_view(area) == "model") std::printf("model            %s\n", text);
  if (std::string_view(area) == "schedule") std::printf("schedule         %s\n", text);
  if (std::string_view(area) == "exchange") std::printf("exchange         %s\n", text);
  warn_of_tuning(user, level, area, text);
}

/// Where a recipe computes that leaves it open: on the cpu.
std::string device_of(const Recipe& recipe) {
  const std::string device = recipe_text(recipe, "device");
  return device == "auto" ? "cpu" : device;
}

Context make_context(const Recipe& recipe) {
  const std::string device = device_of(recipe);
  st_context_options options;
  ask(st_context_options_init(&options, sizeof options));
  options.device = device.c_str();
  options.log = print_log;
  options.threads = static_cast<int32_t>(std::min<int64_t>(recipe_whole(recipe, "threads"), INT32_MAX));
  // Ranks of a launcher allocate only their own: the stage's, with zero 3 their shards, and with zero 1 and 2 in 16-bit precision those of
  // the masters.
  const bool has_own = recipe_whole(recipe, "stages") > 1 || recipe_whole(recipe, "tensor") > 1 || recipe_whole(recipe, "zero") == 3 ||
                       recipe_text(recipe, "precision") != "fp32";
  options.late_parameters = has_own ? 1 : 0;
  return make<Context>(st_context_create, &options);
}

int64_t parameters_of(const Model& model) {
  int64_t sum = 0;
  for (int64_t i = 0; i < number(st_model_parameter_count, model.get()); ++i) {
    st_parameter_info info;
    ask(st_parameter_info_init(&info, sizeof info));
    ask(st_model_parameter(model.get(), i, &info));
    int64_t elements = 1;
    for (int32_t d = 0; d < info.rank; ++d) elements *= info.dims[d];
    sum += elements;
  }
  return sum;
}

std::string threads_text(const Recipe& recipe, int64_t processes) {
  const int64_t ranks = std::max(processes, recipe_whole(recipe, "ranks")), chosen = recipe_whole(recipe, "threads");
  const int64_t threads = chosen > 0 ? chosen : std::max<int64_t>(1, Json::parse(text(st_features))["cores"].get<int64_t>() / ranks);
  const std::string of_each = ranks == 1 ? "" : " on each of " + std::to_string(ranks) + " ranks";
  return std::to_string(threads) + (threads == 1 && ranks > 1 ? " thread" : " threads") + of_each;
}

std::string shape_text(const Json& model) {
  const auto also = [&](const char* key, const std::string& text) { return model.contains(key) ? text + model[key].dump() : ""; };
  return model["layers"].dump() + " layers, width " + model["width"].dump() + ", " + model["heads"].dump() + " heads" +
         also("groups", ", groups ") + also("ffn", ", ffn ") + ", context " + model["context"].dump() + ", vocabulary " +
         model["vocabulary"].dump();
}

std::string rows_text(int64_t rows, int64_t context) { return with_commas(rows) + " rows (" + with_commas(rows * context) + " tokens)"; }

/// Prints the start of every run, and collects the facts of its report.
void summarize(RunParts& parts, const TrainOptions& o, const ModelChoice& choice, const Recipe& recipe) {
  const Json model = choice.sizes();
  const std::string parameters = with_commas(parameters_of(parts.model));
  const std::string training = rows_text(number(st_data_rows, parts.train.get()), parts.context);
  const std::string validation = parts.validation ? rows_text(number(st_data_rows, parts.validation.get()), parts.context) : "none";
  const std::string device = device_of(recipe) + ", " + threads_text(recipe, parts.ranks->size());
  const Json plan = Json::parse(text(st_trainer_plan, parts.trainer.get()));
  const Json& bytes = plan["ranks"][0]["memory"];
  std::string memory = bytes_text(bytes["device_total"].get<double>()) + " planned";
  if (const double host = bytes["host_total"].get<double>(); host > 0) memory += ", and " + bytes_text(host) + " in the host's memory";
  if (const double file = bytes["file_total"].get<double>(); file > 0)
    memory += ", and " + bytes_text(file) + " in " + recipe_text(recipe, "offload_folder");

  std::printf("model            %s: %s; %s parameters\n", choice.model().c_str(), shape_text(model).c_str(), parameters.c_str());
  std::printf("data             %s: %s to train on, %s to validate\n", o.data.c_str(), training.c_str(), validation.c_str());
  std::printf("device           %s; %s\n", device.c_str(), memory.c_str());
  if (recipe_text(recipe, "gemm_library") == "auto")
    for (const auto& [by, count] : plan["ranks"][0]["products"].items())
      std::printf("products         %lld by %s\n", static_cast<long long>(count.get<int64_t>()), by == "own" ? "own kernels" : by.c_str());
  std::printf("steps            %s%s rows", o.steps.empty() ? "none; a step has " : (o.steps + " of ").c_str(),
              with_commas(parts.rows_per_step).c_str());
  if (recipe_text(recipe, "batch") == "auto")
    std::printf(", in %lld micro-batches", static_cast<long long>(plan["ranks"][0]["micro_batches"].get<int64_t>()));
  if (o.steps.empty() && recipe_whole(recipe, "lr_steps") == kUntrainedSteps)
    std::printf("; schedules are checked as for %s steps", with_commas(kUntrainedSteps).c_str());
  std::printf("\n");
  std::fflush(stdout);

  parts.title = choice.model() + ", " + model["layers"].dump() + " layers of width " + model["width"].dump();
  parts.subtitle = "on " + o.data + ", " + device;
  parts.facts["Model"] = model;
  parts.facts["Model"]["parameters"] = parameters;
  parts.facts["Data"] = {{"path", o.data}, {"training", training}, {"validation", validation}};
}

ModelChoice choose_model(const TrainOptions& o, const Json& of_checkpoints, const InitWeights* init) {
  if (!of_checkpoints.is_null()) return {of_checkpoints, o.checkpoint, o.sizes};
  if (init != nullptr && !init->model().is_null()) return {init->model(), init->model_source(), o.sizes};
  return ModelChoice(o.sizes);
}

/// Runs after the trainer exists: if weights are sharded, each rank reads its own shards.
void begin_with(const InitWeights& init, const RunParts& parts) {
  init.read(parts.model.get());
  if (parts.ranks->communicator() == nullptr) return;
  const std::string digest = text(st_model_digest_collective, parts.model.get());
  if (parts.ranks->shared(digest) != digest)
    refuse("--init: rank ", parts.ranks->rank(), " has read different weights from rank 0; give all ranks the same file");
}

int run_on_ranks(const TrainOptions& o, const Recipe& recipe, const Context& context, const RunRanks& ranks, const RunOptions& options,
                 const CheckpointOptions& checkpoints) {
  RunParts parts;
  parts.made_in = context.get();
  parts.ranks = &ranks;
  if (!checkpoints.folder.empty()) {
    parts.checkpoints = std::make_unique<RunCheckpoints>(context.get(), checkpoints, ranks);
    parts.checkpoints->keep_stream(recipe.get(), [&](const std::string& key) { return o.recipe.is_given(key, recipe); });
  }
  const bool can_resume = parts.checkpoints && parts.checkpoints->can_resume();
  const std::unique_ptr<InitWeights> init = o.init.empty() || can_resume ? nullptr : std::make_unique<InitWeights>(o.init);
  ModelChoice choice = choose_model(o, can_resume ? parts.checkpoints->model() : Json(), init.get());
  parts.context = choice.context();
  const double fraction = real_number("--validation", o.validation);
  if (fraction < 0 || fraction >= 1) refuse("--validation is ", o.validation, "; it must be at least 0 and less than 1");
  Data data = make<Data>(st_data_files, context.get(), o.data.c_str(), Json{{"context", parts.context}}.dump().c_str());
  const int64_t vocabulary = number(st_data_vocabulary, data.get());
  if (!o.sample.empty() && vocabulary != 256) refuse("--sample: the data's tokens are not bytes, so there is no text to continue");
  if (fraction > 0) {
    st_data *train = nullptr, *validation = nullptr;
    ask(st_data_split(data.get(), fraction, 0, &train, &validation));
    parts.train.reset(train);
    parts.validation.reset(validation);
  } else {
    if (options.stopping.is_on())
      refuse("early_stopping_patience needs the validation loss, but --validation 0 leaves no rows for it; give a fraction above 0, or ",
             "early_stopping_patience 0");
    parts.train = std::move(data);
  }

  choice.fit_vocabulary(vocabulary, o.data);
  parts.known_model = choice.known();
  parts.model = choice.make(context.get(), recipe_whole(recipe, "seed"));
  parts.trainer = ranks.communicator() == nullptr
                      ? make<Trainer>(st_trainer_create, parts.model.get(), recipe.get(), parts.train.get())
                      : make<Trainer>(st_trainer_create_in_group, parts.model.get(), recipe.get(), parts.train.get(), ranks.communicator());
  parts.rows_per_step = Json::parse(text(st_trainer_plan, parts.trainer.get()))["rows_per_step"].get<int64_t>();
  if (init) begin_with(*init, parts);
  summarize(parts, o, choice, recipe);
  if (o.explain) std::printf("%s\n", text(st_trainer_explain, parts.trainer.get()));
  if (o.steps.empty()) return kDone;
  // A file of another machine is refused before the first step.
  if (!options.machine.empty() && ranks.is_first()) text(st_trainer_forecast, parts.trainer.get(), options.machine.c_str());
  return train(parts, options);
}

/// All ranks detect a mismatch together, and each reports it.
bool is_mismatch() {
  st_error_info info;
  return st_error_info_init(&info, sizeof info) == ST_OK && st_last_error_info(&info) == ST_OK && info.status == ST_RANK_MISMATCH;
}

int run_train(const TrainOptions& o) {
  RunOptions options = o.run();
  const CheckpointOptions checkpoints = o.checkpoints();
  catch_save_signal();  // before anything slow: a scheduler's SIGUSR1 must not end the run
  const Recipe recipe = o.recipe.recipe(options.steps);
  options.stopping = early_stopping(recipe);
  options.averages = Json::parse(text(st_recipe_get, recipe.get(), "ema_decay")).get<double>() > 0;
  const Context context = make_context(recipe);
  const RunRanks ranks(context.get(), o.deadline_seconds(), o.transport);
  try {
    o.check_alike(ranks);
    return run_on_ranks(o, recipe, context, ranks, options, checkpoints);
  } catch (const Failure& failure) {
    if (!is_mismatch()) ranks.end(failure.what());
    throw;
  }
}

}  // namespace

Command train_command(CLI::App& app) {
  auto options = std::make_shared<TrainOptions>();
  CLI::App* command = app.add_subcommand("train", "train a model; a progress bar on a terminal, one line per step elsewhere");
  options->add(*command);
  return {command, [options] { return run_train(*options); }};
}

}  // namespace cli
