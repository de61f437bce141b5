// Progress of a run: a bar on a terminal, one line per step elsewhere.
#pragma once

#include <scaletrain/scaletrain.h>

#include <chrono>
#include <cstdint>
#include <string>

namespace cli {

class Progress {
 public:
  /// Writes to stdout.
  explicit Progress(int64_t steps);
  ~Progress() { finish(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void step(const st_step_report& report);
  /// average_loss: loss of the moving average of the weights; NaN if there is none.
  void validation(int64_t step, double loss, double average_loss);
  /// Ends the bar's line.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  void draw();
  std::string bar(size_t room) const;
  std::string time_left() const;

  int64_t steps_;
  bool terminal_;
  bool bar_shown_ = false;
  st_step_report last_{};
  double validation_ = -1;        // none yet
  double tokens_per_second_ = 0;  // smoothed over about ten steps
  Clock::time_point started_ = Clock::now(), drawn_{};
};

/// 1234567 -> "1,234,567".
std::string with_commas(int64_t number);
/// 1536000 -> "1.5 MiB".
std::string bytes_text(double bytes);

}  // namespace cli
