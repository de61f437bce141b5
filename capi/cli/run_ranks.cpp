#include "run_ranks.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <string_view>
#include <vector>

namespace cli {
namespace {

st_view plain_view(st_dtype dtype, const int64_t* count, void* data, int64_t bytes) {
  return {dtype, 1, count, nullptr, data, bytes, 0, 0};
}

bool has(st_trainer* trainer, const char* key, std::string_view json) { return text(st_trainer_get, trainer, key) == json; }

/// Whether ranks have different parts of the model.
bool is_split(st_trainer* trainer) { return !has(trainer, "stages", "1") || !has(trainer, "tensor", "1"); }

}  // namespace

RunRanks::RunRanks(st_context* context, double deadline, const std::string& transport) : deadline_(deadline) {
  if (!transport.empty()) setenv("SCALETRAIN_TRANSPORT", transport.c_str(), 1);
  st_communicator_options options;
  ask(st_communicator_options_init(&options, sizeof options));
  options.deadline_milliseconds = options.start_milliseconds = std::llround(deadline * 1e3);
  st_communicator* made = nullptr;
  const st_status status = st_communicator_env(context, &options, &made);
  const bool is_missing = status == ST_NOT_FOUND && !transport.empty();
  if (is_missing && transport != "local" && transport != "gloo" && transport != "mpi")
    refuse("--transport ", transport, "; it must be local, gloo or mpi. Another plug-in needs ranks that a launcher starts, and ",
           "none started this process");
  if (is_missing && transport != "local")
    refuse("--transport ", transport,
           " connects ranks that are processes, but no launcher started this one; use scaletrain launch -n 2 -- ",
           "scaletrain train .., or mpirun, torchrun or srun");
  if (status == ST_NOT_FOUND) return;
  ask(status);
  communicator_.reset(made);
  ask(st_communicator_rank(made, &rank_));
  ask(st_communicator_size(made, &size_));
  if (size_ == 1) communicator_.reset();
  if (!is_first() && std::freopen("/dev/null", "w", stdout) == nullptr) throw Failure(kFailed, "train: cannot open /dev/null");
}

Json RunRanks::shared(const Json& of_first) const {
  if (!communicator_) return of_first;
  std::string text = is_first() ? of_first.dump() : "";
  const int64_t one = 1;
  int64_t bytes = std::ssize(text);
  const st_view size = plain_view(ST_I64, &one, &bytes, sizeof bytes);
  run(st_communicator_broadcast(communicator(), "rank 0's message", &size, 0, nullptr));
  text.resize(static_cast<size_t>(bytes));
  const st_view letters = plain_view(ST_U8, &bytes, text.data(), bytes);
  run(st_communicator_broadcast(communicator(), "rank 0's message", &letters, 0, nullptr));
  return Json::parse(text);
}

std::array<int64_t, 2> RunRanks::largest(std::array<int64_t, 2> own) const {
  if (!communicator_) return own;
  const int64_t count = std::ssize(own);
  const st_view view = plain_view(ST_I64, &count, own.data(), sizeof own);
  run(st_communicator_all_reduce(communicator(), "signals", &view, ST_REDUCE_MAX, nullptr));
  return own;
}

std::vector<double> RunRanks::gathered(double own) const {
  if (!communicator_) return {own};
  std::vector<double> all(static_cast<size_t>(size_));
  const int64_t one = 1, count = size_;
  const st_view mine = plain_view(ST_F64, &one, &own, sizeof own);
  const st_view whole = plain_view(ST_F64, &count, all.data(), count * static_cast<int64_t>(sizeof own));
  run(st_communicator_all_gather(communicator(), "times", &mine, &whole, nullptr));
  return all;
}

void RunRanks::await_first(const std::function<void()>& work) const {
  if (!communicator_) return work();
  if (!is_first()) {
    while (largest({0, 0})[0] != 0) continue;
    return;
  }
  const auto interval = std::chrono::duration<double>(std::clamp(deadline_ / 8, 0.001, 1.0));  // well before the deadline
  std::future<void> done = std::async(std::launch::async, work);
  while (done.wait_for(interval) != std::future_status::ready) largest({1, 0});
  largest({0, 0});
  done.get();
}

bool RunRanks::shares_state(st_trainer* trainer) const { return size_ > 1 && (is_split(trainer) || !has(trainer, "zero", "0")); }

/// With zero 1 and 2 in 16-bit precision ranks have the masters in shards.
bool RunRanks::shares_weights(st_trainer* trainer) const {
  const bool has_masters = has(trainer, "zero", "0") || (!has(trainer, "zero", "3") && has(trainer, "precision", "\"fp32\""));
  return size_ > 1 && (is_split(trainer) || !has_masters);
}

void RunRanks::end(const std::string& reason) const noexcept {
  if (communicator_) st_communicator_abort(communicator(), reason.c_str());
}

bool is_debugging_ranks() {
  const char* debug = std::getenv("SCALETRAIN_DEBUG");
  return debug != nullptr && ("," + std::string(debug) + ",").find(",ranks,") != std::string::npos;
}

}  // namespace cli
