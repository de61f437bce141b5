#include "comm/pipes/pipe_group.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/float_mode.h"
#include "base/os/machine.h"
#include "base/os/shared_word.h"
#include "base/text.h"
#include "base/utf8.h"
#include "comm/pipes/frame.h"
#include "comm/pipes/pipe_lane.h"

namespace st {
namespace {

constexpr double kBeat = 0.1;                                 // seconds; longer in a large group
constexpr double kStopped = 0.5;                              // seconds between two polls that mean that this process was stopped
constexpr double kAwake = 100e-6;                             // seconds that a wait yields before it sleeps
constexpr double kShortestNap = 20e-6, kLongestNap = 0.5e-3;  // seconds of a sleep, from which nothing wakes it
constexpr double kLooks = 0.025;                              // seconds between the polls of the keeper thread

template <size_t N>
void copy_text(std::array<char, N>& to, std::string_view from) noexcept {
  const size_t bytes = utf8_valid_until(from.substr(0, N - 1));
  std::memcpy(to.data(), from.data(), bytes);
}

/// Text received from another rank, up to the first byte that is not UTF-8.
template <size_t N>
std::string_view words_of(const std::array<char, N>& text) {
  const std::string_view words{text.data(), strnlen(text.data(), N)};
  return words.substr(0, utf8_valid_until(words));
}

FailureFrame frame_of(const RankFailure& failure) noexcept {
  FailureFrame frame;
  frame.rank = failure.rank;
  frame.code = failure.code;
  copy_text(frame.reason, failure.reason);
  return frame;
}

int64_t window_of(int size) {
  constexpr int64_t kMost = int64_t{1} << 20, kLeast = int64_t{16} << 10, kAll = int64_t{64} << 20;
  int64_t window = kMost;
  while (window > kLeast && window * size > kAll) window /= 2;
  return window;
}

HelloFrame own_hello(int size) {
  HelloFrame hello;
  hello.size = size;
  hello.window = static_cast<int32_t>(window_of(size));
  copy_text(hello.version, ST_LIBRARY_VERSION);
  copy_text(hello.host, text(os::host_name(), ", process ", os::process_id()));
  return hello;
}

void nap(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

class PipeEnd final : public Transport {
 public:
  explicit PipeEnd(std::unique_ptr<Pipes> pipes)
      : pipes_(std::move(pipes)), rank_(pipes_->rank()), own_(own_hello(pipes_->size())), beat_(std::max(kBeat, 4e-3 * own_.size)) {
    lanes_.reserve(static_cast<size_t>(size()));
    HelloFrame nobody = own_;
    nobody.window = 1;  // a rank sends nothing to itself, so that lane needs no memory
    for (int other = 0; other < size(); ++other) lanes_.emplace_back(*pipes_, other, other == rank_ ? nobody : own_);
    try {
      keeper_ = std::thread([this] {
        start_in_default_float_mode();
        keep();
      });
    } catch (const std::system_error& refusal) {
      fail(Code::unavailable,
           text("pipes: the heartbeat thread could not be started (", refusal.what(), "); raise the limit on threads or processes"));
    }
  }
  ~PipeEnd() override;
  PipeEnd(const PipeEnd&) = delete;
  PipeEnd& operator=(const PipeEnd&) = delete;

  void meet(const PipeGroupOptions& options);

  int rank() const override { return rank_; }
  int size() const override { return own_.size; }
  std::string_view name() const override { return pipes_->name(); }
  std::string host_of(int rank) const override;

  void post(int to, std::span<const std::byte> bytes) override {
    if (to == rank_ || bytes.empty()) return;
    const std::lock_guard lock(mutex_);
    lane(to).post(bytes);
    move(to, os::seconds());
  }
  bool is_sent(int to) const override {
    const std::lock_guard lock(mutex_);
    return lane(to).is_sent();
  }
  void withdraw() noexcept override {
    const std::lock_guard lock(mutex_);
    for (PipeLane& lane : lanes_) lane.withdraw();
  }

  std::span<const std::byte> arrived(int from) override {
    const std::lock_guard lock(mutex_);
    return lane(from).arrived();
  }
  void take(int from, int64_t bytes) override {
    const std::lock_guard lock(mutex_);
    lane(from).take(static_cast<uint64_t>(bytes));
    move(from, os::seconds());  // the other rank may be waiting for room
  }

  bool progress() override {
    const std::lock_guard lock(mutex_);
    look();
    return std::exchange(has_news_, false);
  }
  void idle(double seconds) override;
  void wake() noexcept override { is_woken_.store(true, std::memory_order_release); }

  std::optional<RankFailure> failure() override {
    if (!has_failed_.load(std::memory_order_acquire)) {
      const std::lock_guard lock(mutex_);
      look();  // or a call that begins now would know less than one that waits
    }
    if (!has_failed_.load(std::memory_order_acquire)) return std::nullopt;
    return failure_;
  }
  bool has_left(int rank) const override {
    const std::lock_guard lock(mutex_);
    return lane(rank).has_left();
  }
  double silence_of(int rank) const override {
    const std::lock_guard lock(mutex_);
    const double heard_at = std::max(lane(rank).heard_at(), awake_since_);
    return rank == rank_ ? 0 : std::max(0.0, os::seconds() - heard_at - (beat_ - kBeat));
  }
  void abort(const RankFailure& failure) noexcept override {
    const std::lock_guard lock(mutex_);
    set_failure(failure);
    if (std::exchange(has_reported_, true)) return;
    const FailureFrame frame = frame_of(failure_);
    for (PipeLane& lane : lanes_) lane.say_failure(frame);
    look();
  }

 private:
  PipeLane& lane(int rank) { return lanes_[static_cast<size_t>(rank)]; }
  const PipeLane& lane(int rank) const { return lanes_[static_cast<size_t>(rank)]; }

  void keep() noexcept;
  void look() noexcept;
  void move(int other, double now) noexcept;
  void set_failure(const RankFailure& failure) noexcept;
  void say_that_we_leave() noexcept;
  bool can_hear(int other) const;
  bool is_missing(int other) const { return other != rank_ && !lane(other).hello(); }
  [[noreturn]] void refuse(int other);
  [[noreturn]] void fail_missing(double patience);
  [[noreturn]] void fail_with(const RankFailure& failure);

  std::unique_ptr<Pipes> pipes_;
  const int rank_;
  const HelloFrame own_;
  const double beat_;
  const int64_t process_ = os::process_id();

  mutable std::mutex mutex_;  // guards the members below; never held during a wait
  std::vector<PipeLane> lanes_;
  double looked_at_ = os::seconds(), awake_since_ = looked_at_;
  bool has_news_ = false;  // elements have moved since the last progress(), on whichever thread
  bool has_reported_ = false;
  RankFailure failure_;  // not written once has_failed_ is set
  std::atomic<bool> has_failed_{false};
  std::atomic<bool> is_woken_{false};
  std::atomic<uint32_t> is_leaving_{0};
  std::thread keeper_;
};

PipeEnd::~PipeEnd() {
  if (process_ != os::process_id()) {  // a forked child has no such thread and is not a rank
    keeper_.detach();
    (void)pipes_.release();  // their destructor may need threads of the parent
    return;
  }
  is_leaving_.store(1);
  os::wake_sleepers(is_leaving_);
  keeper_.join();
  say_that_we_leave();
}

/// Waits until all ranks know it or leave too: a rank that saw the broken pipe first would take this one for dead.
void PipeEnd::say_that_we_leave() noexcept {
  constexpr double kPatience = 1, kPatienceAfterFailure = 0.5, kMoment = 0.1;
  for (PipeLane& lane : lanes_) {
    lane.withdraw();
    lane.say_left();
  }
  const double began = os::seconds(), end = began + (has_failed_.load() ? kPatienceAfterFailure : kPatience);
  for (double pause = 20e-6; os::seconds() < end; pause = std::min(2 * pause, 2e-3)) {
    look();
    bool is_done = true;
    for (int other = 0; other < size(); ++other) {
      const PipeLane& to = lane(other);
      if (other == rank_ || (!can_hear(other) && os::seconds() > began + kMoment)) continue;
      const bool knows = to.has_left() || to.knows_that_we_left() || to.is_broken();
      is_done = is_done && knows && to.is_empty();
    }
    if (is_done) return;
    nap(pause);
  }
}

/// False only in a failed group, for the rank at fault (dead or silent) and for ranks that had not joined. Even these get kMoment, since
/// the failure may still be on its way to them.
bool PipeEnd::can_hear(int other) const {
  if (!has_failed_.load(std::memory_order_relaxed) || failure_.code == Code::rank_mismatch) return true;
  return other != failure_.rank && lane(other).hello().has_value();
}

void PipeEnd::keep() noexcept {
  for (; is_leaving_.load() == 0; os::sleep_while(is_leaving_, 0, kLooks)) {
    const std::lock_guard lock(mutex_);
    look();
  }
}

/// Polls all lanes.
void PipeEnd::look() noexcept {
  const double now = os::seconds();
  if (now - looked_at_ > kStopped) awake_since_ = now;
  looked_at_ = now;
  for (int other = 0; other < size(); ++other) move(other, now);
}

void PipeEnd::move(int other, double now) noexcept {
  if (other == rank_) return;
  PipeLane& to = lane(other);
  has_news_ = to.move(now, beat_) || has_news_;
  if (has_failed_.load(std::memory_order_relaxed)) return;
  try {
    if (const auto& said = to.failure()) {
      const bool is_known = said->rank >= 0 && said->rank < size() && said->code >= Code::invalid_argument && said->code <= Code::internal;
      set_failure({is_known ? said->rank : other, is_known ? said->code : Code::rank_failed, std::string(words_of(said->reason))});
    } else if (to.is_broken() && !to.has_left()) {
      set_failure({other, Code::rank_failed, text("its connection is broken: ", to.break_reason())});
    }
  } catch (const std::bad_alloc&) {
    set_failure({other, Code::rank_failed, {}});
  }
}

void PipeEnd::set_failure(const RankFailure& failure) noexcept {
  if (has_failed_.load(std::memory_order_relaxed)) return;
  failure_.rank = failure.rank;
  failure_.code = failure.code;
  try {
    failure_.reason = failure.reason;
  } catch (const std::bad_alloc&) {  // the others learn the rank but not the reason
  }
  has_failed_.store(true, std::memory_order_release);
}

void PipeEnd::idle(double seconds) {
  const double began = os::seconds(), end = began + seconds;
  for (double now = began; now < end; now = os::seconds()) {
    if (progress() || has_failed_.load(std::memory_order_relaxed) || is_woken_.exchange(false)) return;
    if (now - began < kAwake) {
      std::this_thread::yield();  // the awaited rank may need this core
    } else {
      nap(std::min(std::clamp((now - began) / 8, kShortestNap, kLongestNap), end - now));  // wakes at most an eighth too late
    }
  }
}

std::string PipeEnd::host_of(int rank) const {
  const std::lock_guard lock(mutex_);
  if (rank == rank_) return std::string(words_of(own_.host));
  if (rank < 0 || rank >= size() || !lane(rank).hello()) return "unknown";
  return std::string(words_of(lane(rank).hello()->host));
}

// The start.

void PipeEnd::meet(const PipeGroupOptions& options) {
  const double end = os::seconds() + options.patience;
  for (;; idle(1e-3)) {
    progress();
    bool is_whole = true;
    for (int other = 0; other < size(); ++other) {
      const std::lock_guard lock(mutex_);
      is_whole = is_whole && !is_missing(other);
    }
    for (int other = 0; other < size(); ++other) {
      std::optional<HelloFrame> hello;
      if (other != rank_) {
        const std::lock_guard lock(mutex_);
        hello = lane(other).hello();
      }
      if (hello && (hello->size != own_.size || hello->window != own_.window || hello->version != own_.version)) refuse(other);
    }
    if (is_whole) return;
    if (const auto failure = this->failure()) fail_with(*failure);
    for (int other = 0; other < size(); ++other)
      if (other != rank_ && has_left(other))
        fail_with({other, Code::rank_failed, "it left before all ranks had joined; its own error says why"});
    if (options.is_cancelled && options.is_cancelled()) {
      abort({rank_, Code::rank_failed, "it has aborted: cancelled"});
      fail(Code::cancelled, text(name(), ": cancelled while waiting for other ranks"));
    }
    if (os::seconds() > end) fail_missing(options.patience);
  }
}

void PipeEnd::refuse(int other) {
  const auto side = [](int rank, const HelloFrame& hello) {
    return text("rank ", rank, " expects ", hello.size, " ranks and runs version ", words_of(hello.version), " of the library");
  };
  const HelloFrame theirs = *lane(other).hello();
  fail_with({other, Code::rank_mismatch, text(side(other, theirs), ", ", side(rank_, own_), "; start all ranks with equal settings")});
}

void PipeEnd::fail_missing(double patience) {
  std::string missing;
  int first = -1;
  for (int other = 0; other < size(); ++other) {
    const std::lock_guard lock(mutex_);
    if (!is_missing(other)) continue;
    missing += text(missing.empty() ? "" : ", ", other);
    if (first < 0) first = other;
  }
  fail_with({first, Code::timeout,
             text("not all ", size(), " ranks joined within ", patience, " s; missing: ", missing,
                  "; start every rank, and check that each can reach all others, or raise the deadline")});
}

void PipeEnd::fail_with(const RankFailure& failure) {
  abort(failure);
  const std::string host = host_of(failure.rank);
  Error error(failure.code, text(name(), ": rank ", failure.rank, " (", host, "): ", failure.reason));
  error.place.rank = failure.rank;
  error.place.host = host;
  throw error;
}

}  // namespace

int64_t pipe_group_bytes(int size) { return (size - 1) * window_of(size); }

std::unique_ptr<Transport> join_pipe_group(std::unique_ptr<Pipes> pipes, const PipeGroupOptions& options) {
  check(pipes->size() >= 1 && pipes->size() <= kMostPipeRanks, pipes->name(), ": size must be 1 to ", kMostPipeRanks, " ranks, got ",
        pipes->size());
  check(pipes->rank() >= 0 && pipes->rank() < pipes->size(), pipes->name(), ": rank must be 0 to ", pipes->size() - 1, ", got ",
        pipes->rank());
  auto end = std::make_unique<PipeEnd>(std::move(pipes));
  end->meet(options);
  return end;
}

}  // namespace st
