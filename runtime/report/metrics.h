// The report of a step, and the log of reports: one JSON object per line.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_line.h"

namespace st {

struct StepReport {
  int64_t step = 0;  // attempt, from 1; counts skipped ones too
  double loss = 0;   // token mean over the step's global batch, before its update
  double lr = 0;
  double grad_norm = 0;  // before clipping
  double loss_scale = 1;
  bool skipped = false;  // the gradient was not finite: nothing was updated
  int64_t tokens = 0;    // since step 1
  double tokens_per_second = 0;
  double milliseconds = 0;
  int64_t memory_bytes = 0;
  double gradient_noise_scale = std::numeric_limits<double>::quiet_NaN();  // in rows; NaN: not measured, or not known yet
  // With several ranks, else NaN: rank 0's time in collectives, the share of it that overlapped its computing, and the slowest rank's
  // computing time divided by the mean of all. In a host's group the last is that of the previous step, because it is known only when the
  // next step begins.
  double exchange_milliseconds = std::numeric_limits<double>::quiet_NaN(), exchange_hidden = std::numeric_limits<double>::quiet_NaN(),
         straggler = std::numeric_limits<double>::quiet_NaN();
};

/// {"step":12,"loss":3.21,...}: keys in this order, 9 significant digits, null for values that are not finite; fields whose comment allows
/// NaN are omitted then. Ends with a newline. Reuses the memory of `line`, so that a step allocates nothing.
const std::string& log_line(JsonLine& line, const StepReport& report);

struct Metric {
  std::string name;  // "metric.accuracy"
  double mean = 0;   // over the output's elements and all rows; for a metric made of losses, over the rows that they count
  double count = 0;  // number of these rows
};

/// An evaluation after `step` steps.
struct ValidationPoint {
  int64_t step = 0;
  double loss = 0;
  std::vector<Metric> metrics = {};
};

/// {"evaluation":{"step":100,"validation_loss":2.9,"metric.accuracy":0.91}}; with "ema_val_loss" in place of "validation_loss" for the
/// moving average of the weights.
const std::string& log_line(JsonLine& line, const ValidationPoint& evaluation, bool of_average = false);

/// The last line of a run: {"state":"<hex>","validation_loss":2.9}; null without validation (NaN). average_loss: "ema_val_loss" of the
/// moving average of the weights; unset: the run keeps none.
const std::string& log_line(JsonLine& line, std::string_view state, double validation_loss,
                            std::optional<double> average_loss = std::nullopt);

/// {"exchange":{"devices":"devices exchange over nccl 2.28.9"}}
const std::string& exchange_line(JsonLine& line, std::string_view devices);

/// Appends lines to a file. Each line is passed to the operating system in one write before write() returns, so that a kill leaves whole
/// lines.
class MetricsLog {
 public:
  /// Truncates the file. Throws io with path and reason.
  explicit MetricsLog(const std::string& path);
  /// Continues after step `resumed`: keeps the lines up to that step, passes them to `see`, and drops later and torn lines. Creates the
  /// file if it is missing.
  MetricsLog(const std::string& path, int64_t resumed, const std::function<void(std::string_view kept)>& see = {});

  void write(const StepReport& report) { append(log_line(line_, report)); }
  void finish(std::string_view state, double validation_loss, std::optional<double> average_loss = std::nullopt) {
    append(log_line(line_, state, validation_loss, average_loss));
  }
  /// Skips a line that the resumed log has already: a resumed run may repeat the evaluation at which it stopped.
  void write(const ValidationPoint& evaluation, bool of_average);
  /// How the devices of the run's ranks exchange.
  void write_exchange(std::string_view devices) { append(exchange_line(line_, devices)); }
  /// Any other line; `json` ends with a newline.
  void append(std::string_view json);

 private:
  void open(const char* mode);

  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string path_;
  std::vector<std::string> evaluated_;  // kept lines of evaluations after the resumed step
  std::unique_ptr<std::FILE, Close> file_;
  JsonLine line_;
};

/// Parses a line of log_line(); empty for a line of another kind. NaN for null and missing values.
std::optional<int64_t> step_of_line(std::string_view line);
std::optional<StepReport> report_of_line(std::string_view line);
/// Parses an evaluation line; empty for a line of another kind and for one of the average.
std::optional<ValidationPoint> evaluation_of_line(std::string_view line);

/// The part of a log up to the last line of a step <= `step` and its evaluation, without what follows (later steps, a run's last line, a
/// torn line).
std::string_view log_until(std::string_view log, int64_t step);

}  // namespace st
