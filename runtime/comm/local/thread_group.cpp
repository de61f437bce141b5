#include "comm/local/thread_group.h"

#include <atomic>
#include <mutex>
#include <new>
#include <utility>

#include "base/bell.h"
#include "base/error.h"
#include "base/os/machine.h"
#include "base/text.h"
#include "comm/flight_board.h"
#include "comm/local/lane.h"

namespace st {
namespace {

/// State shared by all ends; lives as long as the last of them.
class Hub {
 public:
  explicit Hub(int size)
      : size_(size),
        spins_(size <= os::available_cores()),
        host_(text(os::host_name(), ", process ", os::process_id())),
        lanes_(std::make_unique<Lane[]>(static_cast<size_t>(size) * static_cast<size_t>(size))),
        ranks_(std::make_unique<Rank[]>(static_cast<size_t>(size))) {}

  int size() const { return size_; }
  bool spins() const { return spins_; }
  const std::string& host() const { return host_; }
  Lane& lane(int from, int to) { return lanes_[static_cast<size_t>(from) * static_cast<size_t>(size_) + static_cast<size_t>(to)]; }
  FlightBoard& board(int rank) { return ranks_[static_cast<size_t>(rank)].board; }
  Bell& bell(int rank) { return ranks_[static_cast<size_t>(rank)].bell; }

  bool has_left(int rank) const { return ranks_[static_cast<size_t>(rank)].has_left.load(std::memory_order_acquire); }
  void leave(int rank) noexcept {
    ranks_[static_cast<size_t>(rank)].has_left.store(true, std::memory_order_release);
    ring_all();
  }

  std::optional<RankFailure> failure() const {
    if (!has_failed_.load(std::memory_order_acquire)) return std::nullopt;
    return failure_;
  }
  void fail(const RankFailure& failure) noexcept {
    {
      const std::lock_guard lock(mutex_);
      if (has_failed_.load(std::memory_order_relaxed)) return;
      failure_.rank = failure.rank;
      failure_.code = failure.code;
      try {
        failure_.reason = failure.reason;
      } catch (const std::bad_alloc&) {  // the others learn the rank but not the reason
      }
      has_failed_.store(true, std::memory_order_release);  // failure_ is not written after this
    }
    ring_all();
  }

 private:
  struct Rank {
    Bell bell;
    FlightBoard board{};
    std::atomic<bool> has_left{false};
  };

  void ring_all() noexcept {
    for (int rank = 0; rank < size_; ++rank) bell(rank).ring();
  }

  const int size_;
  const bool spins_;  // false if there are more ranks than cores: a spinning rank would take the core from the awaited one
  const std::string host_;
  std::unique_ptr<Lane[]> lanes_;
  std::unique_ptr<Rank[]> ranks_;
  std::mutex mutex_;
  std::atomic<bool> has_failed_{false};
  RankFailure failure_;
};

class ThreadEnd final : public Transport {
 public:
  ThreadEnd(std::shared_ptr<Hub> hub, int rank) : hub_(std::move(hub)), rank_(rank) {}
  ~ThreadEnd() override {
    stop_reading();
    withdraw();
    hub_->leave(rank_);
  }
  ThreadEnd(const ThreadEnd&) = delete;
  ThreadEnd& operator=(const ThreadEnd&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return hub_->size(); }
  std::string_view name() const override { return "threads"; }
  std::string host_of(int) const override { return hub_->host(); }
  bool is_of_threads() const override { return true; }

  void post(int to, std::span<const std::byte> bytes) override {
    if (bytes.empty() || to == rank_) return;
    hub_->lane(rank_, to).post(bytes);
    hub_->bell(to).ring();
  }
  bool is_sent(int to) const override { return to == rank_ || hub_->lane(rank_, to).is_drained(); }
  bool is_handed_over(int to) const override { return to == rank_ || hub_->lane(rank_, to).is_in_slots(); }
  uint64_t read_by(int to) const override { return to == rank_ ? 0 : hub_->lane(rank_, to).read_bytes(); }
  void withdraw() noexcept override {
    // Stop reading first, or two ranks that withdraw at the same time would wait for each other.
    stop_reading();
    for (int to = 0; to < size(); ++to) hub_->lane(rank_, to).withdraw();
  }

  std::span<const std::byte> arrived(int from) override { return hub_->lane(from, rank_).front(); }
  void take(int from, int64_t bytes) override {
    if (hub_->lane(from, rank_).take(static_cast<size_t>(bytes))) hub_->bell(from).ring();
  }

  bool progress() override {
    heard_ = hub_->bell(rank_).rings();
    bool moved = false;
    for (int other = 0; other < size(); ++other) {
      hub_->lane(other, rank_).stop_reading();
      if (!hub_->lane(rank_, other).refill()) continue;
      hub_->bell(other).ring();
      moved = true;
    }
    return moved;
  }
  void idle(double seconds) override { hub_->bell(rank_).wait(heard_, seconds, hub_->spins()); }
  void wake() noexcept override { hub_->bell(rank_).ring(); }

  std::optional<RankFailure> failure() override { return hub_->failure(); }
  bool has_left(int rank) const override { return hub_->has_left(rank); }
  double silence_of(int) const override { return 0; }
  FlightBoard* board(int rank) const override { return &hub_->board(rank); }
  void abort(const RankFailure& failure) noexcept override { hub_->fail(failure); }

 private:
  void stop_reading() noexcept {
    for (int from = 0; from < size(); ++from) hub_->lane(from, rank_).stop_reading();
  }

  std::shared_ptr<Hub> hub_;
  const int rank_;
  uint32_t heard_ = 0;  // rings of our bell as of the last progress()
};

}  // namespace

std::vector<std::unique_ptr<Transport>> make_thread_group(int size) {
  check(size >= 1 && size <= kMaxThreadRanks, "thread group: size must be 1 to ", kMaxThreadRanks, " ranks, got ", size);
  const auto hub = std::make_shared<Hub>(size);
  std::vector<std::unique_ptr<Transport>> ends;
  for (int rank = 0; rank < size; ++rank) ends.push_back(std::make_unique<ThreadEnd>(hub, rank));
  return ends;
}

}  // namespace st
