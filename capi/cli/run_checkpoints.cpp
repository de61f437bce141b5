#include "run_checkpoints.h"

#include <cstdio>

#include "checkpoint_folder.h"
#include "model_choice.h"
#include "seconds_now.h"
#include "stop_signal.h"

namespace cli {
namespace {

st_load_report load_report() {
  st_load_report report;
  ask(st_load_report_init(&report, sizeof report));
  return report;
}

void print_each(const char* label, int64_t count, const char* const* texts) {
  for (int64_t i = 0; i < count; ++i) std::printf("%-16s %s\n", label, texts[i]);
}

}  // namespace

RunCheckpoints::RunCheckpoints(st_context* context, const CheckpointOptions& options, const RunRanks& ranks)
    : context_(context), options_(options), ranks_(ranks), saved_at_(seconds_now()) {
  ranks_.await_first([this] { open(); });
}

void RunCheckpoints::open() {
  st_checkpoint_options chosen;
  ask(st_checkpoint_options_init(&chosen, sizeof chosen));
  chosen.keep_last = options_.keep;
  chosen.keep_every = options_.keep_every;
  chosen.keep_best = options_.keep_best;
  if (options_.keep_best > 0) chosen.best = "validation_loss";
  st_checkpoint* made = nullptr;
  check_folder(st_checkpoint_create(context_, options_.folder.c_str(), &chosen, &made));
  checkpoint_.reset(made);
  const char* list = nullptr;
  check_folder(st_checkpoint_list(made, &list));
  const Json entries = Json::parse(list);
  for (const Json& entry : entries)
    if (entry["problem"].is_null()) readable_.push_back(entry["name"].get<std::string>());
  if (!entries.empty() && !options_.resume)
    refuse("--checkpoint: ", options_.folder, " holds checkpoints of a run, the newest is ", entries.front()["name"].get<std::string>(),
           "; continue it with --resume, or name another folder");
}

st_checkpoint* RunCheckpoints::handle() {
  if (checkpoint_ || ranks_.is_first()) return checkpoint_.get();
  st_checkpoint_options reading;
  ask(st_checkpoint_options_init(&reading, sizeof reading));
  reading.read_only = 1;
  st_checkpoint* made = nullptr;
  check_folder(st_checkpoint_create(context_, options_.folder.c_str(), &reading, &made));
  checkpoint_.reset(made);
  return made;
}

Json RunCheckpoints::newest_manifest() const {
  const char* manifest = nullptr;
  check_folder(st_checkpoint_inspect(checkpoint_.get(), readable_.front().c_str(), &manifest));
  return Json::parse(manifest);
}

bool RunCheckpoints::can_resume() const { return ranks_.shared(!readable_.empty()).get<bool>(); }

Json RunCheckpoints::model() const {
  const bool is_asked = ranks_.is_first() && !readable_.empty();
  return ranks_.shared(is_asked ? model_of_checkpoint(newest_manifest()) : Json());
}

/// {"fixed": what the run has decided once, "keys": the recipe's keys with which `ranks` ranks make the same steps}
Json RunCheckpoints::stream_keys(int64_t ranks) const {
  Json fixed = Json::object(), keys = Json::object();
  if (readable_.empty()) return {{"fixed", fixed}, {"keys", keys}};
  const Json saved = newest_manifest();
  const Json &recipe = saved["recipe"], &training = saved["training"];
  for (const char* key : {"seed", "batch", "accumulate", "micro_batches", "global_batch"})
    if (recipe.contains(key)) keys[key] = recipe[key];
  if (!training.contains("micro_batches")) return {{"fixed", fixed}, {"keys", keys}};
  for (const char* key : {"seed", "batch", "micro_batches"}) fixed[key] = training.at(key);
  fixed["global_batch"] = training.at("batch").get<int64_t>() * training.at("micro_batches").get<int64_t>();
  if (recipe.value("ranks", int64_t{1}) == ranks) return {{"fixed", fixed}, {"keys", keys}};
  keys["accumulate"] = 1;
  keys["global_batch"] = 0;
  for (const char* key : {"batch", "micro_batches"}) keys[key] = training[key];
  return {{"fixed", fixed}, {"keys", keys}};
}

void RunCheckpoints::keep_stream(st_recipe* recipe, const std::function<bool(const std::string& key)>& is_given) const {
  const int64_t ranks = ranks_.size() > 1 ? ranks_.size() : Json::parse(text(st_recipe_get, recipe, "ranks")).get<int64_t>();
  const Json saved = ranks_.shared(ranks_.is_first() ? stream_keys(ranks) : Json());
  const auto asked = [&](const std::string& key) { return std::string(text(st_recipe_get, recipe, key.c_str())); };
  for (const auto& [key, value] : saved["fixed"].items()) {
    const bool follows = asked(key) == "\"auto\"" || (key != "seed" && asked(key) == "0");  // from the other keys
    if (!follows && is_given(key) && asked(key) != value.dump())
      refuse(hyphens(key), " is ", asked(key), ", but the run in ", options_.folder, " has ", value.dump(), "; leave ", hyphens(key),
             " out");
  }
  for (const auto& [key, value] : saved["keys"].items()) {
    const std::string ours = value.dump();
    if (ours != asked(key))
      std::printf("kept             %s: %s in the checkpoint, %s here\n", key.c_str(), ours.c_str(), asked(key).c_str());
    ask(st_recipe_set(recipe, key.c_str(), ours.c_str()));
  }
}

/// {"name", "step", "metadata"}; empty if there is none.
Json RunCheckpoints::resume_newest(st_trainer* trainer) {
  st_load_report report = load_report();
  const st_status status = st_trainer_resume(trainer, handle(), nullptr, nullptr, &report);
  if (status == ST_NOT_FOUND && readable_.empty()) return Json::object();
  check_folder(status);
  print_each("skipped", report.skipped_count, report.skipped);
  std::printf("resumed          %s/%s\n", options_.folder.c_str(), report.name);
  print_each("changed", report.changed_count, report.changed);
  return {{"name", report.name}, {"step", report.step}, {"metadata", Json::parse(report.metadata)}};
}

Json RunCheckpoints::resume(st_trainer* trainer) {
  Json resumed;
  const bool together = ranks_.shares_state(trainer);
  if (together)
    resumed = resume_newest(trainer);
  else
    ranks_.await_first([&] { resumed = resume_newest(trainer); });
  resumed = ranks_.shared(resumed);
  if (resumed.empty()) return resumed;
  if (!together && !ranks_.is_first())
    check_folder(st_trainer_resume(trainer, handle(), resumed["name"].get<std::string>().c_str(), nullptr, nullptr));
  saved_step_ = resumed["step"].get<int64_t>();
  return resumed["metadata"];
}

bool RunCheckpoints::is_due(int64_t step) {
  const bool asked = take_save_signal();
  const bool by_steps = options_.every > 0 && step % options_.every == 0;
  const bool by_time = ranks_.is_first() && options_.minutes > 0 && seconds_now() - saved_at_ >= options_.minutes * 60;
  return asked || by_steps || by_time;
}

decltype(&st_trainer_save) RunCheckpoints::save_call(st_trainer* trainer) const {
  return ranks_.shares_state(trainer) ? st_trainer_save_collective : st_trainer_save;
}

void RunCheckpoints::save(st_trainer* trainer, int64_t step, const Json& metadata) {
  if (ranks_.shares_state(trainer)) return begin_save(trainer, step, metadata);
  ranks_.await_first([&] { begin_save(trainer, step, metadata); });
}

void RunCheckpoints::begin_save(st_trainer* trainer, int64_t step, const Json& metadata) {
  check_last_save();
  saved_at_ = seconds_now();
  const std::string text = metadata.dump();
  st_pending* pending = nullptr;
  const auto save = save_call(trainer);
  st_status status = save(trainer, handle(), text.c_str(), &pending);
  if (status == ST_OUT_OF_MEMORY) status = save(trainer, handle(), text.c_str(), nullptr);  // needs no copy of the state
  pending_.reset(pending);
  if (status == ST_OK)
    saved_step_ = step;
  else
    report_unsaved();
}

/// Every rank knows that a save failed; rank 0 reports it.
void RunCheckpoints::report_unsaved() const {
  if (ranks_.is_first()) std::fprintf(stderr, "scaletrain: the run continues, but a checkpoint was not saved: %s\n", st_last_error());
}

void RunCheckpoints::check_last_save() {
  if (!pending_) return;
  const st_status status = st_pending_wait(pending_.get(), -1);
  pending_.reset();
  if (status == ST_OK) return;
  saved_step_ = -1;
  report_unsaved();
}

void RunCheckpoints::save_last(st_trainer* trainer, int64_t step, const Json& metadata) {
  const auto save_now = [&] {
    check_last_save();
    cli::run(save_call(trainer)(trainer, handle(), metadata.dump().c_str(), nullptr));
  };
  if (ranks_.shares_state(trainer)) {
    if (!ranks_.shared(saved_step_ == step).get<bool>()) save_now();
    return;
  }
  ranks_.await_first([&] {
    if (saved_step_ != step) save_now();
  });
}

std::string RunCheckpoints::newest() {
  const char* list = nullptr;
  check_folder(st_checkpoint_list(handle(), &list));
  return options_.folder + "/" + Json::parse(list).front()["name"].get<std::string>();
}

}  // namespace cli
