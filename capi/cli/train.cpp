// scaletrain train: turns options into a model, its data and a trainer.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <memory>
#include <utility>

#include "init_weights.h"
#include "machine_choice.h"
#include "model_choice.h"
#include "new_file.h"
#include "progress.h"
#include "stop_signal.h"
#include "training_run.h"
#include "tuning_warnings.h"

namespace cli {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kUntrainedSteps = 1'000'000;    // --explain alone: long enough for any warm-up
constexpr int64_t kMostSteps = int64_t{1} << 40;  // more than any run makes; sums of steps cannot overflow

struct TrainOptions {
  ModelOptions sizes;
  std::string data, validation = "0.1";
  std::string steps, init, log, report, trace, machine, sample, transport, deadline = "60";
  std::string checkpoint, every, minutes, keep, keep_every, keep_best;
  bool explain = false, resume = false;
  RecipeOptions recipe;
};

void add_options(CLI::App& app, TrainOptions& o) {
  const auto add = [&app](const char* group, const char* name, std::string& value, const std::string& help) {
    add_text(app, name, value, help + (value.empty() ? "" : " [" + value + "]"))->group(group);
  };
  o.sizes.add(app);
  add("Data", "--data", o.data, "a UTF-8 text file or a folder of them (bytes are tokens), or a .bin token file");
  add("Data", "--validation", o.validation, "fraction at the end of the data for validation; 0: none");
  o.recipe.add(app);
  add("Run", "--steps", o.steps, "optimizer steps in all, those before a resume included");
  add("Run", "--init", o.init,
      "initial weights, with a fresh optimizer: a .safetensors or torch.save file (our names or those of Hugging Face's GPT-2 and Llama), "
      "a "
      "Hugging Face folder, whose config.json describes the model, or checkpoints; not read if --resume finds a checkpoint");
  add("Run", "--log", o.log, "file for one JSON object per step, and one with the final state");
  add("Run", "--report", o.report, "file for an HTML page about the run");
  add("Run", "--trace", o.trace, "file for a timeline of all ranks, for chrome://tracing and Perfetto");
  add("Run", "--machine", o.machine,
      "a file of `scaletrain bench --calibrate FILE`, from whose rates the report and, below the measured step, the trace predict the "
      "step; "
      "default: the report by a table of processors, the trace not at all");
  add("Run", "--sample", o.sample, "text that the trained model continues");
  add("Run", "--transport", o.transport,
      "between a launcher's ranks: local (shared memory of one machine), gloo or mpi; default: SCALETRAIN_TRANSPORT, else local on one "
      "machine and gloo on several");
  add("Run", "--deadline", o.deadline, "seconds that a launcher's ranks wait for one that is silent or does not start");
  add("Checkpoints", "--checkpoint", o.checkpoint, "folder for checkpoints; the end of the run is always saved");
  add("Checkpoints", "--every", o.every, "save every N steps");
  add("Checkpoints", "--minutes", o.minutes, "save every N minutes");
  add("Checkpoints", "--keep", o.keep, "keep the newest N, and the newest whose weights and loss are finite; 0: all; default: 3");
  add("Checkpoints", "--keep-every", o.keep_every, "also keep those of every N-th step");
  add("Checkpoints", "--keep-best", o.keep_best, "also keep the N with the best validation loss");
  app.add_flag("--resume", o.resume, "continue from the newest whole checkpoint; start anew if there is none")->group("Checkpoints");
  app.add_flag("--explain", o.explain, "print the passes, the program and the memory plan, then train; without --steps: only print")
      ->group("Run");
}

int64_t at_least_one(const std::string& option, const std::string& value) {
  const int64_t number = whole_number(option, value);
  if (number < 1) refuse(option, " is ", number, "; give at least 1");
  return number;
}

/// Whether a file at `path` would be read as part of the data folder `folder`, by the rules of TokenSource (runtime/data/tokens.h): every
/// file below the folder, except hidden names and folders named build.
bool is_read_from(const fs::path& folder, const fs::path& path) {
  const fs::path below = path.lexically_relative(folder);
  if (below == ".") return true;
  if (below.empty() || *below.begin() == "..") return false;
  for (auto name = below.begin(); name != below.end(); ++name) {
    const bool is_folder = std::next(name) != below.end();
    if (name->string().starts_with('.') || (is_folder && *name == "build")) return false;
  }
  return true;
}

/// Otherwise the next run would also train on what this run writes into the data folder, and so differ.
void check_outside_data(const std::string& option, const fs::path& path, const std::string& data) {
  std::error_code failed;
  if (!fs::is_directory(data, failed)) return;
  const fs::path folder = fs::canonical(data, failed);
  // A link in the folder to a file elsewhere is read, and so is a file in the folder that is written through a link from elsewhere.
  const fs::path named = fs::weakly_canonical(fs::absolute(path).parent_path(), failed) / path.filename();
  const fs::path written = fs::weakly_canonical(path, failed);
  if (is_read_from(folder, named) || is_read_from(folder, written))
    refuse(option, ": ", path.string(), " is in the data folder ", data,
           ", so the next run would train on it; name a file outside, or below a folder named build");
}

/// Opens an existing file; creates and removes a missing one. So names that are too long and read-only folders are found now. A pipe is
/// skipped, since opening it would wait for its reader. Other ranks of a launch may try the same name at the same time.
void check_writable(const std::string& option, const std::string& path) {
  const std::string file = file_reached_by(path);
  std::error_code ignored;
  const bool is_there = fs::exists(path, ignored);
  int reason = 0;
  if (is_there && access(path.c_str(), W_OK) != 0 && errno != ENOENT) reason = errno;
  if (!is_there) {
    const int made = open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (made < 0 && errno != EEXIST) reason = errno;
    if (made >= 0) close(made);
    if (made >= 0) unlink(file.c_str());
  }
  if (reason != 0) refuse(option, ": cannot write ", path, ": ", std::strerror(reason));
}

/// An hour of training must not end with a file that cannot be written, nor start by truncating its own data.
void check_output(const std::string& option, const std::string& path, const std::string& data) {
  if (path.empty()) return;
  std::error_code ignored;
  const fs::path folder = fs::path(path).has_parent_path() ? fs::path(path).parent_path() : fs::path(".");
  if (fs::is_directory(path, ignored)) refuse(option, ": ", path, " is a folder; name a file");
  if (!fs::is_directory(folder, ignored)) refuse(option, ": no such folder: ", folder.string());
  if (fs::exists(path, ignored) && fs::equivalent(path, data, ignored)) refuse(option, ": ", path, " is the data; name another file");
  check_outside_data(option, path, data);
  check_writable(option, path);
}

CheckpointOptions checkpoint_options(const TrainOptions& o) {
  const auto& folder = o.checkpoint;
  CheckpointOptions made;
  if (folder.empty()) {
    for (const auto& [option, is_given] : {std::pair{"--every", !o.every.empty()},
                                           {"--minutes", !o.minutes.empty()},
                                           {"--keep", !o.keep.empty()},
                                           {"--keep-every", !o.keep_every.empty()},
                                           {"--keep-best", !o.keep_best.empty()},
                                           {"--resume", o.resume}})
      if (is_given) refuse(option, " needs checkpoints; give their folder with --checkpoint");
    return made;
  }
  std::error_code ignored;
  if (fs::exists(folder, ignored) && !fs::is_directory(folder, ignored)) refuse("--checkpoint: ", folder, " is not a folder");
  check_outside_data("--checkpoint", folder, o.data);
  made.folder = folder;
  made.resume = o.resume;
  if (!o.every.empty()) made.every = at_least_one("--every", o.every);
  if (!o.minutes.empty()) made.minutes = real_number("--minutes", o.minutes);
  if (!o.minutes.empty() && made.minutes <= 0) refuse("--minutes is ", o.minutes, "; give a number above 0");
  if (!o.keep.empty()) made.keep = whole_number("--keep", o.keep);
  if (made.keep < 0) refuse("--keep is ", o.keep, "; give 1 or more, or 0 for all");
  if (!o.keep_every.empty()) made.keep_every = at_least_one("--keep-every", o.keep_every);
  if (!o.keep_best.empty()) made.keep_best = at_least_one("--keep-best", o.keep_best);
  if (made.keep_best > 0 && real_number("--validation", o.validation) == 0)
    refuse("--keep-best needs the validation loss, but --validation 0 leaves no rows for it");
  return made;
}

RunOptions run_options(const TrainOptions& o) {
  if (o.data.empty()) refuse("train: --data is missing; give a text file, a folder of them or a .bin token file");
  const bool only_explains = o.explain && o.steps.empty();
  if (o.steps.empty() && !only_explains)
    refuse("train: --steps is missing; give the number of optimizer steps, or --explain to see the plan of a step without training");
  RunOptions run;
  run.steps = only_explains ? kUntrainedSteps : at_least_one("--steps", o.steps);
  if (run.steps > kMostSteps) refuse("--steps is ", run.steps, "; give at most ", kMostSteps);
  run.log = o.log;
  run.report = o.report;
  run.trace = o.trace;
  run.prompt = o.sample;
  if (!o.machine.empty()) {
    const Json machine = machine_choice(o.machine);
    if (!machine.is_object()) refuse("--machine is ", o.machine, "; give a file of `scaletrain bench --calibrate FILE`");
    run.machine = machine.dump();
  }
  check_output("--log", o.log, o.data);
  check_output("--report", o.report, o.data);
  check_output("--trace", o.trace, o.data);
  const auto check_two = [](const char* option, const std::string& path, const char* other, const std::string& second) {
    std::error_code ignored;
    if (!path.empty() && !second.empty() && fs::weakly_canonical(path, ignored) == fs::weakly_canonical(second, ignored))
      refuse(option, " and ", other, " are both ", path, "; name two files");
  };
  check_two("--log", o.log, "--report", o.report);
  check_two("--log", o.log, "--trace", o.trace);
  check_two("--report", o.report, "--trace", o.trace);
  return run;
}

double deadline_of(const TrainOptions& o) {
  const double seconds = real_number("--deadline", o.deadline);
  if (seconds < 0.001 || seconds > 1e6) refuse("--deadline is ", o.deadline, "; give 0.001 to 1000000 seconds");
  return seconds;
}

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

/// An st_log_fn. Prints which libraries compete and why one does not, keys of a DeepSpeed file or a config.json that have no effect, and a
/// schedule that is shorter than the run.
void print_log(void* user, int32_t level, const char* area, const char* text) {
  if (is_debugging_ranks()) print_rank_log(level, area, text);
  if (std::string_view(area) == "gemm_library") std::printf("library          %s\n", text);
  if (std::string_view(area) == "recipe") std::printf("recipe           %s\n", text);
  if (std::string_view(area) == "model") std::printf("model            %s\n", text);
  if (std::string_view(area) == "schedule") std::printf("schedule         %s\n", text);
  warn_of_tuning(user, level, area, text);
}

Context make_context(const Recipe& recipe) {
  const std::string device = recipe_text(recipe, "device");
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
  const std::string device = recipe_text(recipe, "device") + ", " + threads_text(recipe, parts.ranks->size());
  const Json plan = Json::parse(text(st_trainer_plan, parts.trainer.get()));
  const Json& bytes = plan["ranks"][0]["memory"];
  std::string memory = bytes_text(bytes["device_total"].get<double>()) + " planned";
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

/// A rank that alone saves or writes a log would wait for the others in a different place.
void check_alike(const TrainOptions& o, const RunRanks& ranks) {
  if (ranks.communicator() == nullptr) return;
  const auto given = [](bool is_given) { return is_given ? "given" : ""; };  // each rank may have a file of its own
  const Json own = {{"--steps", o.steps},
                    {"--checkpoint", o.checkpoint},
                    {"--every", o.every},
                    {"--minutes", o.minutes},
                    {"--keep", o.keep},
                    {"--keep-every", o.keep_every},
                    {"--keep-best", o.keep_best},
                    {"--resume", given(o.resume)},
                    {"--init", o.init},
                    {"--sample", o.sample},
                    {"--log", given(!o.log.empty())},
                    {"--report", given(!o.report.empty())},
                    {"--trace", given(!o.trace.empty())},
                    {"--machine", given(!o.machine.empty())}};
  const auto text_of = [](const std::string& value) { return value.empty() ? "not given" : value; };
  const Json first = ranks.shared(own);
  for (const auto& [option, value] : first.items())
    if (own.at(option) != value)
      refuse(option, " is ", text_of(own.at(option)), " on rank ", ranks.rank(), " and ", text_of(value),
             " on rank 0; give all ranks the same value");
}

/// All ranks detect a mismatch together, and each reports it.
bool is_mismatch() {
  st_error_info info;
  return st_error_info_init(&info, sizeof info) == ST_OK && st_last_error_info(&info) == ST_OK && info.status == ST_RANK_MISMATCH;
}

int run_train(const TrainOptions& o) {
  RunOptions options = run_options(o);
  const CheckpointOptions checkpoints = checkpoint_options(o);
  catch_save_signal();  // before anything slow: a scheduler's SIGUSR1 must not end the run
  const Recipe recipe = o.recipe.recipe(options.steps);
  options.stopping = early_stopping(recipe);
  options.averages = Json::parse(text(st_recipe_get, recipe.get(), "ema_decay")).get<double>() > 0;
  const Context context = make_context(recipe);
  const RunRanks ranks(context.get(), deadline_of(o), o.transport);
  try {
    check_alike(o, ranks);
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
  add_options(*command, *options);
  return {command, [options] { return run_train(*options); }};
}

}  // namespace cli
