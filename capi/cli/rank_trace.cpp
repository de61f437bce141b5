#include "rank_trace.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <numeric>

#include "forecast_facts.h"
#include "seconds_now.h"

namespace cli {
namespace {

int64_t microseconds_of(double seconds) { return std::llround(seconds * 1e6); }

constexpr int kSteps = 0, kComputing = 1, kExchange = 2, kActions = 3;  // rows of a rank

struct Span {
  int64_t began = 0, ended = 0;  // microseconds
};

Span span_of(const Json& pair) { return {pair[0].get<int64_t>(), pair[1].get<int64_t>()}; }

std::string span_line(int rank, int row, const std::string& name, Span span, const Json& arguments) {
  const Json line = {{"name", name},     {"ph", "X"}, {"pid", rank}, {"tid", row}, {"ts", span.began}, {"dur", span.ended - span.began},
                     {"args", arguments}};
  return line.dump() + ",\n";
}

/// How a schedule's action is written: "F3", with the chunk if a stage has several; and its color in chrome://tracing.
struct ActionKind {
  const char *phase, *letter, *color;
};
constexpr ActionKind kActionKinds[] = {{"forward", "F", "thread_state_runnable"},
                                       {"backward", "B", "thread_state_running"},
                                       {"backward_input", "I", "thread_state_running"},
                                       {"backward_weight", "W", "thread_state_iowait"}};

/// The time of an action after its wait.
std::string action_line(int rank, const Json& action, bool has_chunks, const Json& step) {
  const auto phase = action["phase"].get<std::string>();
  const auto* const kind = std::ranges::find(kActionKinds, phase, &ActionKind::phase);
  const std::string letter = kind == std::end(kActionKinds) ? phase : kind->letter;
  const std::string chunk = has_chunks ? " chunk " + std::to_string(action["chunk"].get<int>()) : "";
  const auto waited = action["waited_us"].get<int64_t>(), ended = action["ended_us"].get<int64_t>();
  const int64_t began = std::min(action["began_us"].get<int64_t>() + waited, ended);
  Json line = {{"name", letter + std::to_string(action["micro_batch"].get<int>()) + chunk},
               {"ph", "X"},
               {"pid", rank},
               {"tid", kActions},
               {"ts", began},
               {"dur", ended - began},
               {"args",
                {{"step", step},
                 {"phase", phase},
                 {"chunk", action["chunk"]},
                 {"micro_batch", action["micro_batch"]},
                 {"waited_ms", static_cast<double>(waited) * 1e-3},
                 {"exchanged_ms", action["exchanged_us"].get<double>() * 1e-3}}}};
  if (kind != std::end(kActionKinds)) line["cname"] = kind->color;
  return line.dump() + ",\n";
}

std::string action_lines(const Json& rank) {
  std::string lines;
  if (!rank.contains("actions")) return lines;
  const Json& actions = rank["actions"];
  const bool has_chunks = std::ranges::any_of(actions, [](const Json& action) { return action["chunk"].get<int>() > 0; });
  for (const Json& action : actions) lines += action_line(rank["rank"].get<int>(), action, has_chunks, rank["step"]);
  return lines;
}

/// The name of the process, or of one of its rows.
std::string name_line(int rank, int row, const char* what, const std::string& name) {
  return Json{{"name", what}, {"ph", "M"}, {"pid", rank}, {"tid", row}, {"args", {{"name", name}}}}.dump() + ",\n";
}

/// The fraction of a call's time in which the rank computed.
double hidden_of(Span call, const Json& computed) {
  int64_t overlap = 0;
  for (const Json& pair : computed) {
    const Span span = span_of(pair);
    overlap += std::max<int64_t>(std::min(call.ended, span.ended) - std::max(call.began, span.began), 0);
  }
  return call.ended > call.began ? static_cast<double>(overlap) / static_cast<double>(call.ended - call.began) : 0;
}

/// When this rank's actions of a step were, and how long it computed in them, in seconds.
struct ActionSpan {
  double began = 0, ended = 0, computed = 0;
};

ActionSpan span_of_actions(const Json& actions) {
  ActionSpan span;
  for (const Json& action : actions) {
    const double began = action["began_us"].get<double>(), ended = action["ended_us"].get<double>();
    const double waited = action["waited_us"].get<double>(), exchanged = action["exchanged_us"].get<double>();
    if (span.ended == 0) span.began = std::min(began + waited, ended) * 1e-6;
    span.ended = std::max(span.ended, ended * 1e-6);
    span.computed += std::max(ended - began - waited - exchanged, 0.0) * 1e-6;
  }
  return span;
}

/// The share of the time of all ranks' actions in which this rank computed nothing (st_trainer_timeline). Clocks of several hosts, which
/// differ by more than a second, are compared by what they show after a collective.
double bubble_among(const RunRanks& ranks, const Json& actions) {
  const ActionSpan own = span_of_actions(actions);
  ranks.largest({0, 0});
  const std::vector<double> now = ranks.gathered(seconds_now()), began = ranks.gathered(own.began), ended = ranks.gathered(own.ended);
  double first = own.began, last = own.ended;
  const double here = now[static_cast<size_t>(ranks.rank())];
  for (size_t rank = 0; rank < now.size(); ++rank) {
    const double shift = std::abs(here - now[rank]) > 1 ? here - now[rank] : 0;
    first = std::min(first, began[rank] + shift);
    last = std::max(last, ended[rank] + shift);
  }
  return last > first ? std::clamp(1 - own.computed / (last - first), 0.0, 1.0) : 0;
}

/// The slowest rank's computing time over the mean of all.
double straggler_of(const std::vector<double>& computing) {
  double sum = 0;
  for (const double of_rank : computing) sum += of_rank;
  return sum > 0 ? *std::ranges::max_element(computing) * static_cast<double>(computing.size()) / sum : 1;
}

/// Adds `by` microseconds to the times of a rank in st_trainer_forecast.
void shift(Json& rank, int64_t by) {
  for (Json& span : rank["computed_us"])
    for (Json& time : span) time = time.get<int64_t>() + by;
  for (const char* list : {"actions", "exchanges"})
    for (Json& each : rank[list])
      for (const char* time : {"began_us", "ended_us"}) each[time] = each[time].get<int64_t>() + by;
}

/// The order of processes in viewers.
std::string sort_line(int pid, int index) {
  return Json{{"name", "process_sort_index"}, {"ph", "M"}, {"pid", pid}, {"args", {{"sort_index", index}}}}.dump() + ",\n";
}

/// The index of the step of median duration.
template <class Step>
size_t middle_of(const std::vector<Step>& steps) {
  std::vector<size_t> order(steps.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto middle = order.begin() + std::ssize(order) / 2;
  std::ranges::nth_element(order, middle, {}, [&](size_t i) { return steps[i].ended - steps[i].began; });
  return *middle;
}

/// The predicted step of a rank, as a process `pid` with the rows of the measured one. `rank`: in st_trainer_forecast, its times shifted.
std::string predicted_lines(const Json& rank, int pid, const std::string& name, int64_t began, int64_t step, const Json& differences) {
  std::string lines = name_line(pid, kSteps, "process_name", name);
  constexpr const char* kRows[] = {"steps", "computing", "exchange", "actions"};  // kSteps to kActions
  for (int row = kSteps; row <= kActions; ++row) lines += name_line(pid, row, "thread_name", kRows[row]);
  Json whole = {{"computing_ms", rank["computing"]}, {"exchange_ms", rank["exchange"]}, {"hidden", rank["hidden"]}};
  whole["bubble"] = rank["bubble"];
  whole["largest differences"] = differences;
  lines += span_line(pid, kSteps, "step " + std::to_string(step), {began, began + rank["ended_us"].get<int64_t>()}, whole);
  for (const Json& span : rank["computed_us"]) lines += span_line(pid, kComputing, "computing", span_of(span), {{"step", step}});
  for (const Json& call : rank["exchanges"])
    lines += span_line(pid, kExchange, call["collective"].get<std::string>() + " " + call["label"].get<std::string>(),
                       {call["began_us"].get<int64_t>(), call["ended_us"].get<int64_t>()}, {{"step", step}});
  Json of_process = rank;
  of_process["rank"] = pid;
  of_process["step"] = step;
  return lines + action_lines(of_process);
}

}  // namespace

RankTrace::RankTrace(const std::string& path, const RunRanks& ranks) : ranks_(ranks), path_(path) {
  if (path.empty()) return;
  const int anew = ranks.is_first() ? O_CREAT | O_TRUNC : 0;
  if (!ranks.is_first()) ranks.largest({0, 0});  // waits until rank 0 has created the file
  file_ = open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | anew, 0666);
  if (file_ < 0) refuse("--trace: cannot open ", path, ": ", std::strerror(errno));
  if (ranks.is_first()) append("[\n");
  if (ranks.is_first()) ranks.largest({0, 0});
}

RankTrace::~RankTrace() {
  if (file_ >= 0) close(file_);
}

void RankTrace::add_step(st_trainer* trainer, int64_t step, double began, double ended) {
  if (path_.empty()) return;
  steps_.push_back({step, began, ended});
  const Json timeline = Json::parse(text(st_trainer_timeline, trainer));
  const Json& here = timeline["ranks"];
  std::vector<double> computing;
  for (const Json& rank : here) computing.push_back(rank["computing"].get<double>());
  if (ranks_.communicator() != nullptr) computing = ranks_.gathered(computing.empty() ? 0 : computing.front());

  std::string events;
  if (shown_.empty()) {
    if (here.empty()) events += names_of(ranks_.rank(), nullptr);
    for (const Json& rank : here) events += names_of(rank["rank"].get<int>(), rank);
  }
  const std::string name = "step " + std::to_string(step);
  if (here.empty()) events += span_line(ranks_.rank(), kSteps, name, {microseconds_of(began), microseconds_of(ended)}, Json::object());
  const double straggler = straggler_of(computing);
  for (const Json& rank : here) {
    const auto number = rank["rank"].get<int>();
    Span whole = {rank["began_us"].get<int64_t>(), rank["ended_us"].get<int64_t>()};
    if (number == ranks_.rank()) whole = {microseconds_of(began), microseconds_of(ended)};  // includes the time of this program
    Json times = {
        {"computing_ms", rank["computing"]}, {"exchange_ms", rank["exchange"]}, {"hidden", rank["hidden"]}, {"straggler", straggler}};
    if (rank.contains("bubble"))
      times["bubble"] = ranks_.communicator() == nullptr ? rank["bubble"] : Json(bubble_among(ranks_, rank["actions"]));
    events += span_line(number, kSteps, name, whole, times) + action_lines(rank) + spans_of(rank, straggler);
  }
  append(events);
}

/// `times`: of the rank in st_trainer_timeline; null: it is alone.
std::string RankTrace::names_of(int rank, const Json& times) {
  shown_[rank] = -1;
  const bool is_staged = times.contains("stage");
  const std::string stage = is_staged ? ", stage " + std::to_string(times["stage"].get<int>()) : "";
  std::string names = name_line(rank, kSteps, "process_name", "rank " + std::to_string(rank) + stage);
  if (times.is_null()) return names;
  names += name_line(rank, kSteps, "thread_name", "steps");
  if (is_staged) names += name_line(rank, kActions, "thread_name", "actions");
  return names + name_line(rank, kComputing, "thread_name", "computing") + name_line(rank, kExchange, "thread_name", "exchange");
}

std::string RankTrace::spans_of(const Json& rank, double straggler) {
  const auto number = rank["rank"].get<int>();
  const Json& computed = rank["computed_us"];
  std::string lines;
  for (const Json& span : computed)
    lines += span_line(number, kComputing, "computing", span_of(span), {{"step", rank["step"]}, {"straggler", straggler}});
  for (const Json& call : rank["exchanges"]) {
    const auto sequence = call["sequence"].get<int64_t>();
    const Span span = {call["began_us"].get<int64_t>(), call["ended_us"].get<int64_t>()};
    if (sequence <= shown_[number] || span.ended == 0) continue;
    shown_[number] = sequence;
    lines += span_line(number, kExchange, call["collective"].get<std::string>() + " " + call["label"].get<std::string>(), span,
                       {{"sequence", sequence},
                        {"elements", call["elements"]},
                        {"dtype", call["dtype"]},
                        {"bytes_sent", call["bytes"]},
                        {"hidden", hidden_of(span, computed)}});
  }
  return lines;
}

void RankTrace::finish(const std::function<Json()>& forecast) {
  if (path_.empty()) return;
  Step of;
  std::vector<double> began;
  const bool predicts = forecast && !steps_.empty();
  if (predicts) {
    of = steps_[ranks_.shared(middle_of(steps_)).get<size_t>()];  // all ranks have made the same steps
    began = ranks_.gathered(of.began);
  }
  ranks_.largest({0, 0});  // waits until all have written; rank 0 predicts alone, which may take longer than the others would wait
  if (!ranks_.is_first()) return;
  if (predicts) append(predicted_step(forecast(), of.step, began));
  append("{\"name\":\"end\",\"ph\":\"M\",\"pid\":0}\n]\n");
}

std::string RankTrace::predicted_step(const Json& forecast, int64_t step, const std::vector<double>& began) const {
  const Json differences = largest_differences(forecast);
  const int world = std::max(ranks_.size(), static_cast<int>(shown_.size()));
  const bool has_stages = std::ranges::any_of(forecast["ranks"], [](const Json& rank) { return rank["stage"].get<int>() > 0; });
  std::string events;
  for (int rank = 0; rank < world; ++rank) events += sort_line(rank, 2 * rank);
  for (Json rank : forecast["ranks"]) {
    const int number = rank["rank"].get<int>();
    const int64_t from = microseconds_of(began[std::min(static_cast<size_t>(number), began.size() - 1)]);
    const std::string stage = has_stages ? ", stage " + rank["stage"].dump() : "";
    const std::string name = "rank " + std::to_string(number) + stage + ", predicted, from step " + std::to_string(step) + " (median)";
    shift(rank, from);
    events += sort_line(world + number, 2 * number + 1) + predicted_lines(rank, world + number, name, from, step, differences);
  }
  return events;
}

/// In one write, so that no lines of another rank come in between.
void RankTrace::append(const std::string& events) {
  if (::write(file_, events.data(), events.size()) != std::ssize(events))
    throw Failure(kFailed, "--trace: cannot write to " + path_ + ": " + std::strerror(errno));
}

}  // namespace cli
