// What a step tells, and the log that keeps it: one JSON object a line.
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
  int64_t step = 0;  // attempts from 1, skipped ones too
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
  // Of several ranks, else NaN: what rank 0 spent in exchange, the share of it that went on beside its computing, and the computing time of
  // the slowest rank by the mean of all; in a host's group, where that is known when the next step begins, of the step before.
  double exchange_milliseconds = std::numeric_limits<double>::quiet_NaN(), exchange_hidden = std::numeric_limits<double>::quiet_NaN(),
         straggler = std::numeric_limits<double>::quiet_NaN();
};

/// {"step":12,"loss":3.21,...}: keys in this order, 9 significant digits, null for what is not finite; what may be NaN by
/// its comment is left out then. Ends with a newline; `line` is started anew and keeps its memory, so that a step allocates nothing.
const std::string& log_line(JsonLine& line, const StepReport& report);

struct Metric {
  std::string name;  // "metric.accuracy"
  double mean = 0;   // over the output's elements and all rows; made of losses: over the rows they count
  double count = 0;  // of these rows
};

/// An evaluation, after so many steps.
struct ValidationPoint {
  int64_t step = 0;
  double loss = 0;
  std::vector<Metric> metrics = {};
};

/// {"evaluation":{"step":100,"validation_loss":2.9,"metric.accuracy":0.91}}; of the weights' moving average "ema_val_loss" in place of
/// "validation_loss".
const std::string& log_line(JsonLine& line, const ValidationPoint& evaluation, bool of_average = false);

/// The last line of a run: {"state":"<hex>","validation_loss":2.9}; without validation (NaN) null. average_loss: that of the weights'
/// moving average, "ema_val_loss"; none: none is kept.
const std::string& log_line(JsonLine& line, std::string_view state, double validation_loss,
                            std::optional<double> average_loss = std::nullopt);

/// Appends lines to a file. Each reaches the operating system whole, in one write, before write() returns: a kill leaves whole lines.
class MetricsLog {
 public:
  /// Starts the file anew. Throws io with path and reason.
  explicit MetricsLog(const std::string& path);
  /// Goes on after step `resumed`: keeps the lines up to those of that step, which `see` is shown, and drops the others, a torn one too.
  /// A file that is not there is started.
  MetricsLog(const std::string& path, int64_t resumed, const std::function<void(std::string_view kept)>& see = {});

  void write(const StepReport& report) { append(log_line(line_, report)); }
  void finish(std::string_view state, double validation_loss, std::optional<double> average_loss = std::nullopt) {
    append(log_line(line_, state, validation_loss, average_loss));
  }
  /// Nothing where a resumed log has that line already: a run that goes on may evaluate again where it stopped.
  void write(const ValidationPoint& evaluation, bool of_average);
  /// Any other line; `json` ends with a newline.
  void append(std::string_view json);

 private:
  void open(const char* mode);

  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string path_;
  std::vector<std::string> evaluated_;  // lines that were kept, of evaluations after the step that was resumed
  std::unique_ptr<std::FILE, Close> file_;
  JsonLine line_;
};

/// What a line of log_line() tells; nothing of a line of another kind. NaN for null and for what is not in it.
std::optional<int64_t> step_of_line(std::string_view line);
std::optional<StepReport> report_of_line(std::string_view line);
/// The evaluation of a line; nothing of another kind of line, or of the average's.
std::optional<ValidationPoint> evaluation_of_line(std::string_view line);

/// The part of a log that ends with the last line of a step <= `step`, its evaluation's too. What follows (later steps, a run's last line,
/// a torn line) is not in it.
std::string_view log_until(std::string_view log, int64_t step);

}  // namespace st
