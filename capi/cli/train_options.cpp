#include "train_options.h"

#include <filesystem>
#include <utility>

#include "machine_choice.h"
#include "output_path.h"

namespace cli {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostSteps = int64_t{1} << 40;  // more than any run makes; sums of steps cannot overflow

int64_t at_least_one(const std::string& option, const std::string& value) {
  const int64_t number = whole_number(option, value);
  if (number < 1) refuse(option, " is ", number, "; give at least 1");
  return number;
}

}  // namespace

void TrainOptions::add(CLI::App& app) {
  const auto add_one = [&app](const char* group, const char* name, std::string& value, const std::string& help) {
    add_text(app, name, value, help + (value.empty() ? "" : " [" + value + "]"))->group(group);
  };
  sizes.add(app);
  add_one("Data", "--data", data, "a UTF-8 text file or a folder of them (bytes are tokens), or a .bin token file");
  add_one("Data", "--validation", validation, "fraction at the end of the data for validation; 0: none");
  recipe.add(app);
  add_one("Run", "--steps", steps, "optimizer steps in all, those before a resume included");
  add_one(
      "Run", "--init", init,
      "initial weights, with a fresh optimizer: a .safetensors or torch.save file (our names or those of Hugging Face's GPT-2 and Llama), "
      "a Hugging Face folder, whose config.json describes the model, or checkpoints; not read if --resume finds a checkpoint");
  add_one("Run", "--log", log, "file for one JSON object per step, and one with the final state");
  add_one("Run", "--report", report, "file for an HTML page about the run");
  add_one("Run", "--trace", trace, "file for a timeline of all ranks, for chrome://tracing and Perfetto");
  add_filled(
      app, "--machine", machine,
      "a file of `scaletrain bench --calibrate FILE`, from whose rates the report and, below the measured step, the trace predict the "
      "step; default: the report by a table of processors, the trace not at all")
      ->group("Run");
  add_one("Run", "--sample", sample, "text that the trained model continues");
  add_one("Run", "--transport", transport,
          "between a launcher's ranks: local (shared memory of one machine), gloo or mpi; default: SCALETRAIN_TRANSPORT, else local on one "
          "machine and gloo on several");
  add_one("Run", "--deadline", deadline, "seconds that a launcher's ranks wait for one that is silent or does not start");
  add_one("Checkpoints", "--checkpoint", checkpoint, "folder for checkpoints; the end of the run is always saved");
  add_one("Checkpoints", "--every", every, "save every N steps");
  add_one("Checkpoints", "--minutes", minutes, "save every N minutes");
  add_one("Checkpoints", "--keep", keep, "keep the newest N, and the newest whose weights and loss are finite; 0: all; default: 3");
  add_one("Checkpoints", "--keep-every", keep_every, "also keep those of every N-th step");
  add_one("Checkpoints", "--keep-best", keep_best, "also keep the N with the best validation loss");
  app.add_flag("--resume", resume, "continue from the newest whole checkpoint; start anew if there is none")->group("Checkpoints");
  app.add_flag("--explain", explain, "print the passes, the program and the memory plan, then train; without --steps: only print")
      ->group("Run");
}

RunOptions TrainOptions::run() const {
  if (data.empty()) refuse("train: --data is missing; give a text file, a folder of them or a .bin token file");
  const bool only_explains = explain && steps.empty();
  if (steps.empty() && !only_explains)
    refuse("train: --steps is missing; give the number of optimizer steps, or --explain to see the plan of a step without training");
  RunOptions made;
  made.steps = only_explains ? kUntrainedSteps : at_least_one("--steps", steps);
  if (made.steps > kMostSteps) refuse("--steps is ", made.steps, "; give at most ", kMostSteps);
  made.log = log;
  made.report = report;
  made.trace = trace;
  made.prompt = sample;
  if (!machine.empty()) {
    const Json measured = machine_choice(machine);
    if (!measured.is_object()) refuse("--machine is ", machine, "; give a file of `scaletrain bench --calibrate FILE`");
    made.machine = measured.dump();
  }
  check_output("--log", log, data);
  check_output("--report", report, data);
  check_output("--trace", trace, data);
  const auto check_two = [](const char* option, const std::string& path, const char* other, const std::string& second) {
    std::error_code ignored;
    if (!path.empty() && !second.empty() && fs::weakly_canonical(path, ignored) == fs::weakly_canonical(second, ignored))
      refuse(option, " and ", other, " are both ", path, "; name two files");
  };
  check_two("--log", log, "--report", report);
  check_two("--log", log, "--trace", trace);
  check_two("--report", report, "--trace", trace);
  return made;
}

CheckpointOptions TrainOptions::checkpoints() const {
  const std::string& folder = checkpoint;
  CheckpointOptions made;
  if (folder.empty()) {
    for (const auto& [option, is_given] : {std::pair{"--every", !every.empty()},
                                           {"--minutes", !minutes.empty()},
                                           {"--keep", !keep.empty()},
                                           {"--keep-every", !keep_every.empty()},
                                           {"--keep-best", !keep_best.empty()},
                                           {"--resume", resume}})
      if (is_given) refuse(option, " needs checkpoints; give their folder with --checkpoint");
    return made;
  }
  std::error_code ignored;
  if (fs::exists(folder, ignored) && !fs::is_directory(folder, ignored)) refuse("--checkpoint: ", folder, " is not a folder");
  check_outside_data("--checkpoint", folder, data);
  made.folder = folder;
  made.resume = resume;
  if (!every.empty()) made.every = at_least_one("--every", every);
  if (!minutes.empty()) made.minutes = real_number("--minutes", minutes);
  if (!minutes.empty() && made.minutes <= 0) refuse("--minutes is ", minutes, "; give a number above 0");
  if (!keep.empty()) made.keep = whole_number("--keep", keep);
  if (made.keep < 0) refuse("--keep is ", keep, "; give 1 or more, or 0 for all");
  if (!keep_every.empty()) made.keep_every = at_least_one("--keep-every", keep_every);
  if (!keep_best.empty()) made.keep_best = at_least_one("--keep-best", keep_best);
  if (made.keep_best > 0 && real_number("--validation", validation) == 0)
    refuse("--keep-best needs the validation loss, but --validation 0 leaves no rows for it");
  return made;
}

double TrainOptions::deadline_seconds() const {
  const double seconds = real_number("--deadline", deadline);
  if (seconds < 0.001 || seconds > 1e6) refuse("--deadline is ", deadline, "; give 0.001 to 1000000 seconds");
  return seconds;
}

void TrainOptions::check_alike(const RunRanks& ranks) const {
  if (ranks.communicator() == nullptr) return;
  const auto given = [](bool is_given) { return is_given ? "given" : ""; };  // each rank may have a file of its own
  const Json own = {{"--steps", steps},
                    {"--checkpoint", checkpoint},
                    {"--every", every},
                    {"--minutes", minutes},
                    {"--keep", keep},
                    {"--keep-every", keep_every},
                    {"--keep-best", keep_best},
                    {"--resume", given(resume)},
                    {"--init", init},
                    {"--sample", sample},
                    {"--log", given(!log.empty())},
                    {"--report", given(!report.empty())},
                    {"--trace", given(!trace.empty())},
                    {"--machine", given(!machine.empty())}};
  const auto text_of = [](const std::string& value) { return value.empty() ? "not given" : value; };
  const Json first = ranks.shared(own);
  for (const auto& [option, value] : first.items())
    if (own.at(option) != value)
      refuse(option, " is ", text_of(own.at(option)), " on rank ", ranks.rank(), " and ", text_of(value),
             " on rank 0; give all ranks the same value");
}

}  // namespace cli
