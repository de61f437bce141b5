#include "late_fill.h"

#include <csignal>
#include <utility>

namespace st::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

std::atomic<st_trainer*> signalled{nullptr};

}  // namespace

LateFill::LateFill() {
  before([this](int64_t) {
    std::unique_lock lock(gate_);
    ++late_;
    opened_.wait(lock, [this] { return free_ || passes_ > 0; });
    --late_;
    --passes_;
    return st_status{ST_OK};
  });
}

void LateFill::let_go() {
  const std::lock_guard lock(gate_);
  free_ = true;
  opened_.notify_all();
}

void LateFill::hold(int passes) {
  const std::lock_guard lock(gate_);
  free_ = false;
  passes_ = passes;
}

bool LateFill::is_late() const {
  const std::lock_guard lock(gate_);
  return late_ > 0 && !free_ && passes_ <= 0;
}

LateCancel::LateCancel(CancelBy by, st_context* context, st_trainer* trainer, std::function<bool()> when)
    : handler_before_(std::signal(SIGUSR1, [](int) { st_trainer_cancel(signalled); })) {
  signalled = trainer;
  thread_ = std::thread([this, by, context, trainer, when = std::move(when), waiting = pthread_self()] {
    EXPECT_TRUE(comes_true(when));
    std::this_thread::sleep_for(milliseconds(10));
    at_ = steady_clock::now();
    const bool by_signal = by == CancelBy::signal_handler;
    const st_status status = by == CancelBy::context ? st_context_cancel(context) : by_signal ? ST_OK : st_trainer_cancel(trainer);
    EXPECT_EQ(status, ST_OK);
    EXPECT_EQ(by_signal ? pthread_kill(waiting, SIGUSR1) : 0, 0);
  });
}

LateCancel::~LateCancel() {
  if (thread_.joinable()) thread_.join();
  std::signal(SIGUSR1, handler_before_);
}

steady_clock::duration LateCancel::age() {
  const auto now = steady_clock::now();
  if (thread_.joinable()) thread_.join();
  return now - at_;
}

}  // namespace st::test
