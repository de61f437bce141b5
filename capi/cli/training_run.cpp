#include "training_run.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <limits>

#include "evaluation_steps.h"
#include "peak_memory.h"
#include "progress.h"
#include "stop_signal.h"

namespace cli {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t kBigramTokens = 100'000'000;  // counting pairs takes a second for some ten million tokens

class TrainingRun {
 public:
  TrainingRun(const RunParts& parts, const RunOptions& options)
      : parts_(parts), options_(options), evaluations_(schedule()), progress_(options.steps), stopping_(options.stopping) {}

  int operator()() {
    if (!options_.log.empty()) ask(st_trainer_log(trainer(), options_.log.c_str()));
    if (stopping_.is_on() && !stopping_.can_end(std::ssize(evaluations_)))
      std::printf(
          "early stopping   cannot come: this run evaluates %zu times, the first and last included; lower early_stopping_patience\n",
          evaluations_.size());
    catch_stop_signals();
    evaluate_when_due(0);
    if (stop_signal() == 0) step();
    progress_.finish();
    if (stop_signal() != 0) std::printf("ended by signal %d after a whole step\n", stop_signal());
    if (!ended_.empty()) std::printf("%s\n", ended_.c_str());
    // After Ctrl-C nobody wants to wait for an evaluation; the log's last line then has null for it.
    if (parts_.validation && stop_signal() == 0 && ended_.empty() && last_evaluated_ != options_.steps) evaluate();
    finish();
    return stop_signal() != 0 ? 128 + stop_signal() : kDone;
  }

 private:
  st_trainer* trainer() const { return parts_.trainer.get(); }

  std::vector<int64_t> schedule() const {
    if (!parts_.validation) return {};
    return evaluation_steps(options_.steps, parts_.rows_per_step, number(st_data_rows, parts_.validation.get()));
  }

  void step() {
    const auto on_step = [](void* user, const st_step_report* report) -> st_status {
      return static_cast<TrainingRun*>(user)->after_step(*report);
    };
    const st_status status = st_trainer_run(trainer(), options_.steps, on_step, this);
    if (failure_) std::rethrow_exception(failure_);
    cli::run(status);
  }

  /// Called by the library, so nothing may be thrown through it.
  st_status after_step(const st_step_report& report) {
    try {
      progress_.step(report);
      if (stop_signal() != 0) {
        ask(st_trainer_stop(trainer()));
      } else {
        evaluate_when_due(report.step);
      }
      return ST_OK;
    } catch (...) {
      failure_ = std::current_exception();
      return ST_INTERNAL;
    }
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
    ask(st_trainer_stop(trainer()));
  }

  void evaluate() {
    validation_loss_ = loss_by(st_trainer_evaluate);
    if (options_.averages) average_loss_ = loss_by(st_trainer_evaluate_average);
  }

  double loss_by(decltype(st_trainer_evaluate)* call) const {
    st_evaluation evaluation;
    ask(st_evaluation_init(&evaluation, sizeof evaluation));
    cli::run(call(trainer(), parts_.validation.get(), &evaluation));
    return evaluation.loss;
  }

  void finish() {
    const double final_loss = last_evaluated_ == options_.steps || stop_signal() == 0 ? validation_loss_ : kNan;
    double bigram = kNan;
    if (parts_.validation && stop_signal() == 0) bigram = print_validation(final_loss);
    const std::string sample = options_.prompt.empty() || stop_signal() != 0 ? "" : write_sample();
    std::printf("memory           %s\n", peak_memory(parts_.made_in).c_str());
    std::printf("state            %s\n", text(st_trainer_digest, trainer()));
    if (!options_.log.empty()) {
      cli::run(st_trainer_log_end(trainer(), final_loss));
      std::printf("log              %s\n", options_.log.c_str());
    }
    if (!options_.report.empty()) write_report(bigram, sample);
    std::fflush(stdout);
  }

  /// Returns the bigram table's loss, NaN when it was not counted.
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

  std::string write_sample() const {
    const Predictor predictor = make<Predictor>(st_predictor_create, parts_.model.get(), nullptr);
    const std::vector<int32_t> tokens = bytes_of(options_.prompt);
    std::string sample;
    const auto on_token = [](void* user, int32_t token) -> st_status {
      static_cast<std::string*>(user)->push_back(static_cast<char>(token));
      return stop_signal() == 0 ? ST_OK : ST_CANCELLED;
    };
    cli::run(st_predictor_generate(predictor.get(), std::ssize(tokens), tokens.data(), nullptr, on_token, &sample));
    std::printf("sample           after \"%s\":\n%s%s\n", options_.prompt.c_str(), options_.prompt.c_str(), printable(sample).c_str());
    return sample;
  }

  /// What a byte model writes need not be UTF-8, and must not steer a terminal.
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
    facts["subtitle"] = ended_.empty() ? parts_.subtitle : parts_.subtitle + "; " + ended_;
    if (!std::isnan(bigram)) facts["bigram_loss"] = bigram;
    if (!sample.empty()) {
      facts["prompt"] = options_.prompt;
      facts["sample"] = printable(sample);
    }
    const std::string json = facts.dump(-1, ' ', false, Json::error_handler_t::replace);
    cli::run(st_trainer_write_report(trainer(), options_.report.c_str(), json.c_str()));
    std::printf("report           %s\n", options_.report.c_str());
  }

  const RunParts& parts_;
  const RunOptions& options_;
  std::vector<int64_t> evaluations_;
  Progress progress_;
  double validation_loss_ = kNan, average_loss_ = kNan;
  int64_t last_evaluated_ = -1;
  EarlyStopping stopping_;
  std::string ended_;  // why, before the last step; "": it was not
  std::exception_ptr failure_;
};

}  // namespace

int train(const RunParts& parts, const RunOptions& options) { return TrainingRun(parts, options)(); }

}  // namespace cli
