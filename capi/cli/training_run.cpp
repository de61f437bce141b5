#include "training_run.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <optional>

#include "evaluation_steps.h"
#include "forecast_facts.h"
#include "model_choice.h"
#include "peak_memory.h"
#include "progress.h"
#include "rank_trace.h"
#include "seconds_now.h"
#include "stop_signal.h"

namespace cli {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
// Keys of this program in a checkpoint's metadata.
constexpr const char *kBest = "best_validation_loss", *kWaited = "evaluations_waited", *kEnded = "ended_early";
// kMostSkipped skipped steps in a row (gradients not finite) end a run at once; a run whose last kDivergedBy steps were skipped has failed.
// fp16 skips fewer while it looks for its loss scale.
constexpr int64_t kMostSkipped = 100, kDivergedBy = 10;
constexpr int64_t kBigramTokens = 100'000'000;  // counting pairs takes a second per ten million tokens or so

class TrainingRun {
 public:
  TrainingRun(const RunParts& parts, const RunOptions& options)
      : parts_(parts),
        options_(options),
        evaluations_(schedule()),
        progress_(options.steps),
        stopping_(options.stopping),
        trace_(options.trace, *parts.ranks) {}

  int operator()() {
    if (parts_.checkpoints) resume();
    if (!options_.log.empty()) parts_.ranks->await_first([&] { ask(st_trainer_log(trainer(), options_.log.c_str())); });
    if (stopping_.is_on() && !stopping_.can_end(std::ssize(evaluations_)))
      std::printf(
          "early stopping   cannot happen: this run evaluates %zu times, the first and last included; lower early_stopping_patience\n",
          evaluations_.size());
    if (is_finished()) return finish_again();
    catch_stop_signals();
    if (steps_ == 0) evaluate_when_due(0);
    while (!is_finished() && ended_by_ == 0 && skipped_in_a_row_ < kMostSkipped) step();
    progress_.finish();
    if (ended_by_ != 0) std::printf("ended by signal %d after a whole step\n", ended_by_);
    if (!ended_.empty()) std::printf("%s\n", ended_.c_str());
    // After Ctrl-C no one wants to wait for an evaluation; the log's last line then has null.
    if (parts_.validation && ended_by_ == 0 && ended_.empty() && last_evaluated_ != options_.steps) evaluate();
    const std::optional<Failure> unsaved = save_last();
    if (ended_by_ != 0 && !unsaved && parts_.ranks->is_first()) report_end();
    finish();
    if (unsaved) throw *unsaved;
    if (ended_by_ == 0 && has_diverged()) fail_diverged();
    return ended_by_ != 0 ? 128 + ended_by_ : kDone;
  }

 private:
  st_trainer* trainer() const { return parts_.trainer.get(); }

  std::vector<int64_t> schedule() const {
    if (!parts_.validation) return {};
    return evaluation_steps(options_.steps, parts_.rows_per_step, number(st_data_rows, parts_.validation.get()));
  }

  bool has_diverged() const { return skipped_in_a_row_ >= kDivergedBy || (skipped_in_a_row_ > 0 && skipped_in_a_row_ == steps_made_); }

  [[noreturn]] void fail_diverged() const {
    throw Failure(kFailed,
                  "train: the last " + std::to_string(skipped_in_a_row_) + " steps were skipped because their gradients are not finite" +
                      (steps_ < options_.steps ? ", so the run ended after step " + std::to_string(steps_) : "") +
                      "; --find-nan names the op that makes the first value that is not finite; a lower --lr, --clip or an earlier "
                      "checkpoint may help");
  }

  // --- checkpoints

  void resume() {
    const Json saved = parts_.checkpoints->resume(trainer());
    if (parts_.checkpoints->saved_step() < 0) return;
    steps_ = resumed_at_ = parts_.checkpoints->saved_step();
    const auto text_of = [&](const char* key) { return saved.contains(key) ? saved[key].get<std::string>() : ""; };
    if (saved.contains(kBest)) stopping_.run_until(std::strtod(text_of(kBest).c_str(), nullptr), std::atoll(text_of(kWaited).c_str()));
    if (stopping_.is_on()) ended_ = text_of(kEnded);
  }

  /// This program's values. Checkpoints return a host's texts and numbers as texts.
  Json metadata() const {
    char best[32];
    std::snprintf(best, sizeof best, "%.17g", stopping_.best());
    Json made = {{kBest, best}, {kWaited, stopping_.waited()}, {kEnded, ended_}, {kModelOfRun, parts_.known_model.dump()}};
    if (last_evaluated_ == steps_) made["validation_loss"] = validation_loss_;
    if (last_evaluated_ == steps_ && options_.averages) made["ema_val_loss"] = average_loss_;
    for (Json& value : made)
      if (value.is_number_float() && !std::isfinite(value.get<double>())) value = "nan";
    return made;
  }

  /// A failure is reported once the run's other results are safe.
  std::optional<Failure> save_last() {
    if (!parts_.checkpoints) return std::nullopt;
    try {
      parts_.checkpoints->save_last(trainer(), steps_, metadata());
      return std::nullopt;
    } catch (const Failure& failure) {
      return failure;
    }
  }

  /// After a signal, for the person who sent it.
  void report_end() const {
    if (parts_.checkpoints)
      std::printf("saved            %s; continue with --resume\n", parts_.checkpoints->newest().c_str());
    else
      std::printf("not saved        the run has no --checkpoint\n");
  }

  bool is_finished() const { return steps_ >= options_.steps || !ended_.empty(); }

  /// For a resumed run that had already ended: repeats its last line.
  int finish_again() {
    if (ended_.empty() && parts_.ranks->is_first())
      std::printf("finished         already at step %s of %s; nothing to do. --steps counts all steps of the run\n",
                  with_commas(steps_).c_str(), with_commas(options_.steps).c_str());
    if (parts_.validation) evaluate();
    last_evaluated_ = options_.steps;
    finish();
    std::printf("%s\n", last_line().c_str());
    return kDone;
  }

  /// In the log's form.
  std::string last_line() const {
    const auto digits = [](double value) {
      char text[32];
      std::snprintf(text, sizeof text, "%.9g", value);
      return std::isfinite(value) ? std::string(text) : "null";
    };
    std::string line =
        std::string("{\"state\":\"") + text(st_trainer_digest, trainer()) + "\",\"validation_loss\":" + digits(validation_loss_);
    if (options_.averages) line += ",\"ema_val_loss\":" + digits(average_loss_);
    return line + "}";
  }

  // --- steps

  void step() {
    st_step_report report;
    ask(st_step_report_init(&report, sizeof report));
    const double began = seconds_now();
    cli::run(st_trainer_step(trainer(), 0, nullptr, &report));
    trace_.add_step(trainer(), report.step, began, seconds_now());
    steps_ = report.step;
    ++steps_made_;
    skipped_in_a_row_ = report.skipped != 0 ? skipped_in_a_row_ + 1 : 0;
    progress_.step(report);
    const bool is_due = parts_.checkpoints && parts_.checkpoints->is_due(steps_);
    if (!parts_.checkpoints && take_save_signal())
      std::fprintf(stderr, "scaletrain: SIGUSR1 asks for a checkpoint, but the run has no folder for it; give --checkpoint\n");
    // A signal reaches each rank at a different moment: all end after the same step.
    const auto [signal, save] = parts_.ranks->largest({stop_signal(), is_due ? 1 : 0});
    ended_by_ = static_cast<int>(signal);
    if (ended_by_ != 0) return;
    evaluate_when_due(report.step);
    if (save != 0 && !is_finished()) parts_.checkpoints->save(trainer(), steps_, metadata());
  }

  void evaluate_when_due(int64_t step) {
    if (!std::ranges::binary_search(evaluations_, step)) return;
    evaluate();
    last_evaluated_ = step;
    progress_.validation(step, validation_loss_, average_loss_);
    if (!stopping_.ends_after(validation_loss_) || step == options_.steps) return;
    char best[32];
    std::snprintf(best, sizeof best, "%.4f", stopping_.best());
    ended_ = "ended early after step " + std::to_string(step) + ": " + std::to_string(stopping_.waited()) +
             " evaluations in a row did not improve on the validation loss " + best;
  }

  void evaluate() {
    validation_loss_ = loss_by(st_trainer_evaluate_collective);
    if (options_.averages) average_loss_ = loss_by(st_trainer_evaluate_average_collective);
  }

  double loss_by(decltype(st_trainer_evaluate_collective)* call) const {
    st_evaluation evaluation;
    ask(st_evaluation_init(&evaluation, sizeof evaluation));
    cli::run(call(trainer(), parts_.validation.get(), &evaluation));
    return evaluation.loss;
  }

  /// Rank 0 reports everything. Log and report use the digest that all ranks compute here.
  void finish() {
    const RunRanks& ranks = *parts_.ranks;
    const std::string state = text(st_trainer_digest_collective, trainer());
    const bool samples = !options_.prompt.empty() && ended_by_ == 0;
    // Before rank 0's own work: if the model is sharded, all ranks continue the text together.
    const std::string sample = samples && (ranks.shares_weights(trainer()) || ranks.is_first()) ? continued() : "";
    trace_.finish(options_.machine.empty() ? std::function<Json()>() : [this] { return forecast(); });
    if (!ranks.is_first()) return;
    const double final_loss = last_evaluated_ == options_.steps || ended_by_ == 0 ? validation_loss_ : kNan;
    double bigram = kNan;
    if (parts_.validation && ended_by_ == 0) bigram = print_validation(final_loss);
    if (samples)
      std::printf("sample           after \"%s\":\n%s%s\n", options_.prompt.c_str(), options_.prompt.c_str(), printable(sample).c_str());
    std::printf("memory           %s\n", peak_memory(parts_.made_in).c_str());
    std::printf("state            %s\n", state.c_str());
    if (!options_.log.empty()) {
      cli::run(st_trainer_log_end(trainer(), final_loss));
      std::printf("log              %s\n", options_.log.c_str());
    }
    if (!options_.report.empty()) write_report(bigram, sample);
    std::fflush(stdout);
  }

  /// Returns the bigram table's loss, NaN if it was not counted.
  double print_validation(double loss) const {
    double bigram = kNan;
    const int64_t tokens = number(st_data_rows, parts_.train.get()) * parts_.context;
    if (tokens <= kBigramTokens) cli::run(st_data_bigram_loss(parts_.train.get(), parts_.validation.get(), &bigram));
    std::printf("validation loss  %.4f nats a token\n", loss);
    if (options_.averages) std::printf("of the average   %.4f nats a token, by the moving average of the weights\n", average_loss_);
    if (std::isnan(bigram))
      std::printf("bigram table     not counted: more than %s tokens\n", with_commas(kBigramTokens).c_str());
    else
      std::printf("bigram table     %.4f nats a token on the same tokens\n", bigram);
    return bigram;
  }

  std::string continued() const {
    const auto create = parts_.ranks->shares_weights(trainer()) ? st_predictor_create_collective : st_predictor_create;
    const Predictor predictor = make<Predictor>(create, parts_.model.get(), nullptr);
    const std::vector<int32_t> tokens = bytes_of(options_.prompt);
    std::string sample;
    const auto on_token = [](void* user, int32_t token) -> st_status {
      static_cast<std::string*>(user)->push_back(static_cast<char>(token));
      return stop_signal() == 0 ? ST_OK : ST_CANCELLED;
    };
    cli::run(st_predictor_generate(predictor.get(), std::ssize(tokens), tokens.data(), nullptr, on_token, &sample));
    return sample;
  }

  /// The text of a byte model need not be UTF-8, and must not control a terminal.
  static std::string printable(const std::string& bytes) {
    std::string text = Json::parse(Json(bytes).dump(-1, ' ', false, Json::error_handler_t::replace)).get<std::string>();
    std::ranges::replace_if(
        text, [](char c) { return (c >= 0 && c < ' ' && c != '\n' && c != '\t') || c == '\x7f'; }, '?');
    return text;
  }

  static std::vector<int32_t> bytes_of(const std::string& text) {
    std::vector<int32_t> bytes;
    for (const char c : text) bytes.push_back(static_cast<unsigned char>(c));
    return bytes;
  }

  void write_report(double bigram, const std::string& sample) const {
    Json facts = parts_.facts;
    facts["title"] = parts_.title;
    const std::string resumed =
        resumed_at_ == 0 ? "" : "; resumed after step " + std::to_string(resumed_at_) + "; validation and duration count from there";
    facts["subtitle"] = parts_.subtitle + resumed + (ended_.empty() ? "" : "; " + ended_);
    if (!std::isnan(bigram)) facts["bigram_loss"] = bigram;
    if (!sample.empty()) {
      facts["prompt"] = options_.prompt;
      facts["sample"] = printable(sample);
    }
    facts["Predicted and measured"] = forecast_facts(forecast());
    const std::string json = facts.dump(-1, ' ', false, Json::error_handler_t::replace);
    cli::run(st_trainer_write_report(trainer(), options_.report.c_str(), json.c_str()));
    std::printf("report           %s\n", options_.report.c_str());
  }

  Json forecast() const {
    const char* machine = options_.machine.empty() ? nullptr : options_.machine.c_str();
    return Json::parse(text(st_trainer_forecast, trainer(), machine));
  }

  const RunParts& parts_;
  const RunOptions& options_;
  std::vector<int64_t> evaluations_;
  Progress progress_;
  double validation_loss_ = kNan, average_loss_ = kNan;
  int64_t last_evaluated_ = -1;
  EarlyStopping stopping_;
  std::string ended_;                              // why it ended before the last step; "" if it did not
  int64_t steps_ = 0;                              // done, in all
  int64_t steps_made_ = 0, skipped_in_a_row_ = 0;  // by this process
  int ended_by_ = 0;                               // a signal that some rank received; 0: none
  RankTrace trace_;
  int64_t resumed_at_ = 0;  // 0: not resumed
};

}  // namespace

int train(const RunParts& parts, const RunOptions& options) { return TrainingRun(parts, options)(); }

}  // namespace cli
