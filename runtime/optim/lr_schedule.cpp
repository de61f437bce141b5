#include "optim/lr_schedule.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numbers>
#include <string_view>

#include "base/error.h"

namespace st {
namespace {

constexpr std::array<std::string_view, 8> kKinds = {"constant",     "linear", "polynomial", "cosine",
                                                    "inverse_sqrt", "wsd",    "one_cycle",  "table"};
constexpr std::array<std::string_view, 3> kDecays = {"linear", "cosine", "1-sqrt"};

template <size_t n>
size_t index_of(const std::string& word, const std::array<std::string_view, n>& words, const char* key) {
  const auto found = std::ranges::find(words, word);
  if (found == words.end()) {
    std::string all;
    for (const std::string_view known : words) all += text(all.empty() ? "" : ", ", known);
    fail(Code::invalid_argument, text(key, ": \"", word, "\" is unknown; use one of ", all));
  }
  return static_cast<size_t>(found - words.begin());
}

/// Falls from 1 at x = 0 to 0 at x = 1, with slope 0 at both.
double half_cosine(double x) { return (1 + std::cos(std::numbers::pi * x)) / 2; }

template <class Number>
bool read_whole(std::string_view word, Number& number) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);  // ignores the host's locale
  return error == std::errc() && end == word.data() + word.size();
}

}  // namespace

LrSchedule::LrSchedule(const LrScheduleOptions& options) : options_(options), kind_(kind_named(options.lr_schedule)) {
  const LrScheduleOptions& o = options_;
  check(std::isfinite(o.lr) && o.lr >= 0, "lr must be at least 0 and finite, got ", o.lr);
  check(o.warmup >= 0, "warmup must be at least 0 steps, got ", o.warmup);
  if (has_length()) check_length();
  const bool falls = kind_ != Kind::constant && kind_ != Kind::one_cycle && kind_ != Kind::table;
  check(!falls || o.lr_min <= o.lr, "lr_schedule ", o.lr_schedule, ": lr_min ", o.lr_min, " is above lr ", o.lr,
        ", where the schedule starts; lower lr_min or raise lr");
  if (kind_ == Kind::polynomial) check(o.lr_power > 0, "lr_power must be above 0, got ", o.lr_power);
  if (kind_ == Kind::cosine) check_cycles();
  if (kind_ == Kind::wsd) {
    decay_ = decay_named(o.lr_decay);
    check_decay();
  }
  if (kind_ == Kind::one_cycle) check_one_cycle();
  if (kind_ == Kind::table) table_ = parse_table(o.lr_table);
}

LrSchedule::Kind LrSchedule::kind_named(const std::string& word) { return static_cast<Kind>(index_of(word, kKinds, "lr_schedule")); }

LrSchedule::Decay LrSchedule::decay_named(const std::string& word) { return static_cast<Decay>(index_of(word, kDecays, "lr_decay")); }

bool LrSchedule::has_length() const { return kind_ != Kind::constant && kind_ != Kind::inverse_sqrt && kind_ != Kind::table; }

void LrSchedule::check_length() const {
  const LrScheduleOptions& o = options_;
  check(o.lr_steps > 0, "lr_schedule ", o.lr_schedule, " needs lr_steps, the run's length in successful steps, warm-up included; it is ",
        o.lr_steps == 0 ? "unset" : text(o.lr_steps));
  check(o.warmup < o.lr_steps, "lr_schedule ", o.lr_schedule, ": warmup ", o.warmup, " must be below lr_steps ", o.lr_steps,
        "; make warmup smaller or lr_steps larger");
}

void LrSchedule::check_cycles() const {
  const LrScheduleOptions& o = options_;
  check(o.lr_cycles >= 1 && o.lr_cycle_growth >= 1, "lr_cycles ", o.lr_cycles, " and lr_cycle_growth ", o.lr_cycle_growth,
        " must be at least 1");
  const auto steps = static_cast<double>(o.lr_steps - o.warmup);
  double shortest = 0, length = 1;  // steps of a run whose first cycle is one step long
  for (int64_t cycle = 0; cycle < o.lr_cycles && shortest <= steps; ++cycle) {
    shortest += length;
    length *= static_cast<double>(o.lr_cycle_growth);
  }
  check(shortest <= steps, "lr_schedule cosine: ", o.lr_cycles, " lr_cycles, each ", o.lr_cycle_growth,
        " times as long as the one before, do not fit in the ", o.lr_steps - o.warmup, " steps of lr_steps ", o.lr_steps, " after warmup ",
        o.warmup, ": the first would be shorter than a step");
}

void LrSchedule::check_decay() const {
  const LrScheduleOptions& o = options_;
  check(o.lr_decay_steps > 0, "lr_schedule wsd needs lr_decay_steps, the length of the decay in successful steps; it is unset");
  check(o.lr_decay_steps <= o.lr_steps - o.warmup, "lr_schedule wsd: lr_decay_steps ", o.lr_decay_steps, " and warmup ", o.warmup,
        " are longer than the run's lr_steps ", o.lr_steps, "; shorten one of them");
}

void LrSchedule::check_one_cycle() const {
  const LrScheduleOptions& o = options_;
  check(o.lr_pct_start > 0 && o.lr_pct_start < 1, "lr_pct_start must be between 0 and 1, got ", o.lr_pct_start);
  check(o.lr_div_factor > 0 && o.lr_final_div_factor > 0 && std::isfinite(first()) && std::isfinite(last()), "lr_schedule one_cycle: lr ",
        o.lr, ", lr_div_factor ", o.lr_div_factor, " and lr_final_div_factor ", o.lr_final_div_factor, " make a cycle from ", first(),
        " to ", last(), "; both must be finite, with factors above 0");
}

std::vector<LrSchedule::Entry> LrSchedule::parse_table(const std::string& text) {
  std::vector<Entry> table;
  std::string spaced = text;
  std::ranges::replace(spaced, ',', ' ');
  for (const std::string& word : words_of(spaced)) {
    const size_t colon = word.find(':');
    Entry entry{};
    check(colon != std::string::npos && read_whole(std::string_view(word).substr(0, colon), entry.from) &&
              read_whole(std::string_view(word).substr(colon + 1), entry.lr),
          "lr_table: \"", word, "\" is not of the form STEP:LR; an example is \"0:1e-3 100:5e-4\"");
    check(std::isfinite(entry.lr) && entry.lr >= 0, "lr_table: the learning rate from step ", entry.from,
          " must be at least 0 and finite, got ", entry.lr);
    if (table.empty()) check(entry.from == 0, "lr_table: the first entry must be for step 0, got step ", entry.from);
    if (!table.empty())
      check(entry.from > table.back().from, "lr_table: step ", entry.from, " comes after step ", table.back().from,
            "; give each step once, in ascending order");
    table.push_back(entry);
  }
  check(!table.empty(), "lr_schedule table needs lr_table, for example \"0:1e-3 100:5e-4\"; it is empty");
  return table;
}

double LrSchedule::at(int64_t k) const {
  if (k >= options_.warmup) return after_warm_up(k);
  const double top = kind_ == Kind::table ? from_table(k) : first();
  return top * (static_cast<double>(k + 1) / static_cast<double>(options_.warmup));
}

double LrSchedule::first() const { return kind_ == Kind::one_cycle ? options_.lr / options_.lr_div_factor : options_.lr; }

double LrSchedule::last() const { return first() / options_.lr_final_div_factor; }

double LrSchedule::after_warm_up(int64_t k) const {
  const LrScheduleOptions& o = options_;
  switch (kind_) {
    case Kind::constant:
      return o.lr;
    case Kind::linear:
      return falling(1 - steps_behind(k) / length());
    case Kind::polynomial:
      return falling(std::pow(1 - steps_behind(k) / length(), o.lr_power));
    case Kind::cosine:
      return cycled(steps_behind(k));
    case Kind::inverse_sqrt:
      return std::max(o.lr_min, o.lr * std::sqrt(static_cast<double>(std::max<int64_t>(o.warmup, 1)) / (static_cast<double>(k) + 1)));
    case Kind::wsd:
      return decayed(k);
    case Kind::one_cycle:
      return one_cycle(steps_behind(k));
    case Kind::table:
      return from_table(k);
  }
  fail(Code::internal, "lr_schedule: there is no formula for it");
}

/// 1: lr, 0: lr_min.
double LrSchedule::falling(double share) const { return options_.lr_min + (options_.lr - options_.lr_min) * share; }

double LrSchedule::length() const { return static_cast<double>(options_.lr_steps - options_.warmup); }

/// Steps since the warm-up, at most length().
double LrSchedule::steps_behind(int64_t k) const { return static_cast<double>(std::min(k, options_.lr_steps) - options_.warmup); }

double LrSchedule::cycled(double j) const {
  const auto cycles = static_cast<double>(options_.lr_cycles), growth = static_cast<double>(options_.lr_cycle_growth);
  // Scaled so that all lengths are whole numbers and a cycle that ends on a step ends exactly there.
  if (options_.lr_cycle_growth == 1) {
    const double at = j * cycles, cycle = std::min(std::floor(at / length()), cycles - 1);
    return falling(half_cosine((at - cycle * length()) / length()));
  }
  double firsts = 0;  // length of all cycles, in first cycles
  for (int64_t cycle = 0; cycle < options_.lr_cycles; ++cycle) firsts = firsts * growth + 1;
  double begin = 0, steps = length();
  for (int64_t cycle = 1; cycle < options_.lr_cycles && j * firsts >= begin + steps; ++cycle) {
    begin += steps;
    steps *= growth;
  }
  return falling(half_cosine((j * firsts - begin) / steps));
}

double LrSchedule::decayed(int64_t k) const {
  const int64_t i = std::min(k, options_.lr_steps) - (options_.lr_steps - options_.lr_decay_steps);
  if (i <= 0) return options_.lr;
  const double x = static_cast<double>(i) / static_cast<double>(options_.lr_decay_steps);
  switch (decay_) {
    case Decay::linear:
      return falling(1 - x);
    case Decay::cosine:
      return falling(half_cosine(x));
    case Decay::one_minus_sqrt:
      return falling(1 - std::sqrt(x));
  }
  fail(Code::internal, "lr_decay: there is no formula for it");
}

double LrSchedule::one_cycle(double j) const {
  const double peak = options_.lr_pct_start * length() - 1, end = length() - 1, top = options_.lr;
  if (j < peak) return top + (first() - top) * half_cosine(j / peak);
  return last() + (top - last()) * half_cosine((std::min(j, end) - peak) / (end - peak));
}

double LrSchedule::from_table(int64_t k) const {
  const auto behind = std::ranges::upper_bound(table_, k, {}, &Entry::from);
  return std::prev(behind)->lr;  // its first entry is for step 0
}

}  // namespace st
