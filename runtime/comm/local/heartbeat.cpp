#include "comm/local/heartbeat.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <system_error>

#include "base/error.h"
#include "base/float_mode.h"
#include "base/os/shared_word.h"
#include "base/text.h"

namespace st {
namespace {

constexpr double kPeriod = 0.1;                   // seconds
constexpr int64_t kStoppedAfter = 1'000'000'000;  // nanoseconds; a beat this late: the process was stopped, or the machine suspended

int64_t nanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

Heartbeat::Heartbeat(RankSlot& slot, int rank) {
  try {
    thread_ = std::thread([this, &slot] {
      start_in_default_float_mode();
      run(slot);
    });
  } catch (const std::system_error& refusal) {
    fail(Code::unavailable,
         text("process group: the heartbeat thread could not be started (", refusal.what(), "); raise the limit on threads or processes"));
  }
  while (state_.load() == starting) os::sleep_while(state_, starting, 1);
  if (state_.load() == beating) return;
  thread_.join();
  if (error_) std::rethrow_exception(error_);
  fail(Code::busy, text("process group: rank ", rank, " has already joined; give each process its own rank, and each job its own name"));
}

Heartbeat::~Heartbeat() {
  if (process_ != os::process_id()) {  // a forked child has no such thread and is not a rank
    thread_.detach();
    return;
  }
  state_.store(stopping);
  os::wake_sleepers(state_);
  thread_.join();
}

void Heartbeat::run(RankSlot& slot) noexcept {
  std::optional<os::OwnedWord> life;
  try {
    life.emplace(slot.life);
  } catch (...) {
    error_ = std::current_exception();
  }
  const bool is_ours = life && life->take();
  if (is_ours) beat(slot);
  state_.store(is_ours ? beating : refused);
  os::wake_sleepers(state_);
  if (!is_ours) return;
  while (state_.load() == beating) {
    beat(slot);
    os::sleep_while(state_, beating, kPeriod);
  }
  slot.life.store(RankSlot::kLeft);
}

void Heartbeat::beat(RankSlot& slot) noexcept {
  const int64_t now = nanoseconds();
  if (now - last_beat_.load() > kStoppedAfter) awake_since_.store(now);  // before the beat: silence_of() reads them in reverse order
  last_beat_.store(now);
  slot.beat.store(now);
}

double Heartbeat::silence_of(const RankSlot& other) const {
  const int64_t own = last_beat_.load();
  const int64_t seen = std::max(other.beat.load(), awake_since_.load());
  return seen < own ? static_cast<double>(own - seen) * 1e-9 : 0;
}

}  // namespace st
