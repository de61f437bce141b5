#include "progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>

namespace cli {
namespace {

constexpr auto kRedraw = std::chrono::milliseconds(100);
constexpr size_t kWidestBar = 30, kNarrowestBar = 4;

size_t terminal_columns() {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

std::string format_loss(double loss) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4f", loss);
  return text;
}

}  // namespace

Progress::Progress(int64_t steps) : steps_(steps), terminal_(isatty(STDOUT_FILENO) == 1) {}

void Progress::step(const st_step_report& report) {
  last_ = report;
  const double now = report.tokens_per_second;
  tokens_per_second_ = tokens_per_second_ == 0 ? now : 0.9 * tokens_per_second_ + 0.1 * now;
  if (!terminal_) {
    std::printf("step %lld/%lld  loss %s  lr %.3g  grad norm %.3g  %s tokens/s%s\n", static_cast<long long>(report.step),
                static_cast<long long>(steps_), format_loss(report.loss).c_str(), report.lr, report.grad_norm,
                with_commas(static_cast<int64_t>(now)).c_str(), report.skipped != 0 ? "  skipped: the gradient is not finite" : "");
    std::fflush(stdout);
    return;
  }
  if (Clock::now() - drawn_ >= kRedraw || report.step == steps_) draw();
}

void Progress::validation(int64_t step, double loss, double average_loss) {
  validation_ = loss;
  if (terminal_) {
    if (step > 0) draw();
    return;
  }
  const std::string average = std::isnan(average_loss) ? "" : "  of the average " + format_loss(average_loss);
  std::printf("step %lld/%lld  validation loss %s%s\n", static_cast<long long>(step), static_cast<long long>(steps_),
              format_loss(loss).c_str(), average.c_str());
  std::fflush(stdout);
}

void Progress::finish() {
  if (!bar_shown_) return;
  draw();
  std::printf("\n");
  std::fflush(stdout);
  bar_shown_ = false;
}

void Progress::draw() {
  std::string text = std::to_string(last_.step) + "/" + std::to_string(steps_) + "  loss " + format_loss(last_.loss);
  if (validation_ >= 0) text += "  validation " + format_loss(validation_);
  text += "  " + with_commas(static_cast<int64_t>(tokens_per_second_)) + " tokens/s  " + time_left();
  const size_t room = terminal_columns() - 1;  // a wrapped line cannot be redrawn
  const std::string line = (bar(room > text.size() + 3 ? room - text.size() - 3 : 0) + text).substr(0, room);
  std::printf("\r%s\x1b[K", line.c_str());
  std::fflush(stdout);
  drawn_ = Clock::now();
  bar_shown_ = true;
}

/// As wide as the numbers allow.
std::string Progress::bar(size_t room) const {
  const size_t width = std::min(room, kWidestBar);
  if (width < kNarrowestBar) return "";
  const auto filled = static_cast<size_t>(static_cast<int64_t>(width) * last_.step / std::max<int64_t>(1, steps_));
  return "[" + std::string(filled, '#') + std::string(width - filled, '.') + "] ";
}

std::string Progress::time_left() const {
  const double elapsed = std::chrono::duration<double>(Clock::now() - started_).count();
  const bool over = last_.step >= steps_;
  const double seconds =
      over ? elapsed : elapsed / static_cast<double>(std::max<int64_t>(1, last_.step)) * static_cast<double>(steps_ - last_.step);
  const long long whole = std::llround(seconds);
  char text[48];
  if (whole >= 3600)
    std::snprintf(text, sizeof text, "%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60, whole % 60);
  else
    std::snprintf(text, sizeof text, "%lld:%02lld", whole / 60, whole % 60);
  return std::string(text) + (over ? "" : " left");
}

std::string with_commas(int64_t number) {
  std::string digits = std::to_string(number);
  for (auto i = std::ssize(digits) - 3; i > (number < 0 ? 1 : 0); i -= 3) digits.insert(static_cast<size_t>(i), 1, ',');
  return digits;
}

std::string bytes_text(double bytes) {
  constexpr const char* kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < std::size(kUnits)) bytes /= 1024, ++unit;
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", bytes, kUnits[unit]);
  return text;
}

}  // namespace cli
