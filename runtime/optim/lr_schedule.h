// Learning-rate schedules: pure functions of the number of successful steps so far, so that skipped steps, a resume or another number of
// ranks change nothing.
//
// f(k) is the learning rate of the step after k successful ones, with W = warmup, S = lr_steps, m = lr_min.
//   k < W        linear warm-up to the schedule's first value, with a first step above zero: f(k) = lr (k+1)/W
//   W <= k < S   by the table below, with j = k - W, D = S - W and c(x) = (1 + cos(pi x)) / 2
//   k >= S       the schedule's last value
//
//   constant      lr
//   linear        m + (lr - m) (1 - j/D)                        PyTorch's LinearLR and, with warmup 0, Hugging Face's "linear"
//   polynomial    m + (lr - m) (1 - j/D)^lr_power               PolynomialLR
//   cosine        m + (lr - m) c(j/D)                           CosineAnnealingLR. With lr_cycles n and lr_cycle_growth g: n cycles that
//                 each start at lr again. The first has L = D / (1 + g + ... + g^(n-1)) steps, each other g times as many as the one
//                 before: m + (lr - m) c(i/L_cycle) at step i of a cycle (CosineAnnealingWarmRestarts: T_0 = L, T_mult = g)
//   inverse_sqrt  max(m, lr sqrt(w / (k+1))), w = max(W, 1), without a length (Vaswani et al. 2017, with lr as its peak; Megatron)
//   wsd           lr, then in the last N = lr_decay_steps of the S steps m + (lr - m) d(i/N), i = k - (S - N) (Hu et al. 2024, MiniCPM);
//                 d by lr_decay: "linear" 1 - x, "cosine" c(x), "1-sqrt" 1 - sqrt(x) (Haegele et al. 2024)
//   one_cycle     Smith and Topin 2017, with the cosine annealing of PyTorch's OneCycleLR: from a = lr / lr_div_factor up to lr at
//                 j = lr_pct_start D - 1, then down to a / lr_final_div_factor at j = D - 1. The warm-up before it rises to a
//   table         lr_table "0:1e-3 100:5e-4": the rate from k = 0 and from k = 100, without interpolation; times (k+1)/W for k < W.
//                 lr is not used
//
// Options that a schedule does not use are not checked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace st {

/// Recipe keys of the same names.
struct LrScheduleOptions {
  std::string lr_schedule = "constant";
  double lr = 1e-3;
  int64_t warmup = 20;   // successful steps
  int64_t lr_steps = 0;  // successful steps in all, warm-up included; 0: unset
  double lr_min = 0;
  double lr_power = 1;
  int64_t lr_cycles = 1;
  int64_t lr_cycle_growth = 1;
  int64_t lr_decay_steps = 0;  // 0: unset
  std::string lr_decay = "linear";
  double lr_pct_start = 0.3;
  double lr_div_factor = 25;
  double lr_final_div_factor = 1e4;
  std::string lr_table = {};
};

class LrSchedule {
 public:
  /// Throws invalid_argument with the keys and their values: an unknown word, lr_steps or lr_decay_steps needed but unset, a warm-up or
  /// decay longer than the run, lr_min above lr, more cycles than steps, a malformed table.
  explicit LrSchedule(const LrScheduleOptions& options);

  /// The learning rate of the step after k successful ones, k from 0. Allocates nothing.
  double at(int64_t k) const;
  /// Whether the step after k successful ones is past lr_steps, so that at(k) is the last value. Always false without a length.
  bool has_ended(int64_t k) const { return has_length() && k >= options_.lr_steps; }

 private:
  enum class Kind : uint8_t { constant, linear, polynomial, cosine, inverse_sqrt, wsd, one_cycle, table };
  enum class Decay : uint8_t { linear, cosine, one_minus_sqrt };
  struct Entry {
    int64_t from;  // successful steps
    double lr;
  };

  static Kind kind_named(const std::string& word);
  static Decay decay_named(const std::string& word);
  static std::vector<Entry> parse_table(const std::string& text);
  bool has_length() const;
  void check_length() const;
  void check_cycles() const;
  void check_decay() const;
  void check_one_cycle() const;
  double first() const;
  double last() const;
  double length() const;
  double steps_behind(int64_t k) const;
  double after_warm_up(int64_t k) const;
  double falling(double share) const;
  double cycled(double j) const;
  double decayed(int64_t k) const;
  double one_cycle(double j) const;
  double from_table(int64_t k) const;

  LrScheduleOptions options_;
  Kind kind_;
  Decay decay_ = Decay::linear;
  std::vector<Entry> table_;
};

}  // namespace st
