#include "comm/local/process_group.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/os/machine.h"
#include "base/spin.h"
#include "base/text.h"
#include "comm/local/byte_ring.h"
#include "comm/local/rendezvous.h"

namespace st {
namespace {

constexpr double kSpin = 50e-6;  // seconds: longer than falling asleep and being woken takes
constexpr double kSleep = 0.02;  // longest sleep in seconds: a killed rank wakes nobody

/// Bytes that were posted to a rank and are not in its ring yet.
class Outbox {
 public:
  bool is_empty() const { return first_ == waiting_.size(); }
  void add(std::span<const std::byte> bytes) { waiting_.push_back(bytes); }
  void clear() noexcept {
    waiting_.clear();
    first_ = 0;
  }
  /// Returns whether anything moved.
  bool flush(RingWriter& ring) {
    bool moved = false;
    while (!is_empty()) {
      std::span<const std::byte>& next = waiting_[first_];
      const size_t put = ring.put(next);
      moved = moved || put > 0;
      next = next.subspan(put);
      if (!next.empty()) return moved;
      ++first_;
    }
    clear();
    return moved;
  }

 private:
  std::vector<std::span<const std::byte>> waiting_;
  size_t first_ = 0;
};

class ProcessEnd final : public Transport {
 public:
  ProcessEnd(Rendezvous rendezvous, int rank) : rendezvous_(std::move(rendezvous)), rank_(rank) {
    for (int other = 0; other < size(); ++other) {
      hosts_.push_back(segment().host_of(other));
      peers_.emplace_back(other == rank ? ByteRing() : segment().ring(rank, other),
                          other == rank ? ByteRing() : segment().ring(other, rank));
    }
  }
  ~ProcessEnd() override {
    rendezvous_.heart.reset();
    segment().wake_all();
  }
  ProcessEnd(const ProcessEnd&) = delete;
  ProcessEnd& operator=(const ProcessEnd&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return segment().size(); }
  std::string_view name() const override { return "shared memory"; }
  std::string host_of(int rank) const override { return rank >= 0 && rank < size() ? hosts_[static_cast<size_t>(rank)] : "unknown"; }

  void post(int to, std::span<const std::byte> bytes) override {
    if (to == rank_ || bytes.empty()) return;
    Peer& peer = peer_of(to);
    peer.outbox.add(bytes);
    push(to, peer);
  }
  bool is_sent(int to) const override { return peers_[static_cast<size_t>(to)].outbox.is_empty(); }
  void withdraw() noexcept override {
    for (Peer& peer : peers_) peer.outbox.clear();
  }

  std::span<const std::byte> arrived(int from) override { return from == rank_ ? std::span<const std::byte>() : peer_of(from).in.front(); }
  void take(int from, int64_t bytes) override {
    peer_of(from).in.take(static_cast<uint64_t>(bytes));
    segment().wake(from, SharedSegment::for_room);
  }

  bool progress() override {
    bool moved = false;
    for (int other = 0; other < size(); ++other) {
      if (other == rank_) continue;
      Peer& peer = peer_of(other);
      moved = push(other, peer) || moved;
      const uint64_t written = peer.in.written();
      moved = moved || written != peer.seen;
      peer.seen = written;
    }
    return moved;
  }
  void idle(double seconds) override;
  void wake() noexcept override {
    is_woken_.store(true);
    segment().wake(rank_, SharedSegment::for_bytes);
  }

  std::optional<RankFailure> failure() override {
    if (auto failure = segment().failure()) return failure;
    for (int other = 0; other < size(); ++other)
      if (other != rank_ && (peer_of(other).in.is_broken() || peer_of(other).out.is_broken()))
        return RankFailure{other, Code::rank_failed, "it has corrupted the ring counters in the group's shared memory; restart the group"};
    return std::nullopt;
  }
  bool has_left(int rank) const override { return segment().has_left(rank); }
  double silence_of(int rank) const override { return rank == rank_ ? 0 : rendezvous_.heart->silence_of(segment().slot(rank)); }
  FlightBoard* board(int rank) const override { return &segment().slot(rank).board; }
  void abort(const RankFailure& failure) noexcept override { segment().abort(failure); }

 private:
  struct Peer {
    Peer(ByteRing to, ByteRing from) : out(to), in(from) {}
    RingWriter out;
    RingReader in;
    Outbox outbox;
    uint64_t seen = 0;  // bytes that had arrived at the last progress()
  };

  const SharedSegment& segment() const { return rendezvous_.segment; }
  SharedSegment& segment() { return rendezvous_.segment; }
  Peer& peer_of(int rank) { return peers_[static_cast<size_t>(rank)]; }

  bool push(int to, Peer& peer) {
    if (!peer.outbox.flush(peer.out)) return false;
    segment().wake(to, SharedSegment::for_bytes);
    return true;
  }
  bool has_news();

  Rendezvous rendezvous_;
  const int rank_;
  std::vector<std::string> hosts_;
  std::vector<Peer> peers_;
  std::atomic<bool> is_woken_{false};
};

bool ProcessEnd::has_news() {
  if (is_woken_.load() && is_woken_.exchange(false)) return true;
  for (int other = 0; other < size(); ++other) {
    if (other == rank_) continue;
    Peer& peer = peer_of(other);
    if (peer.in.written() != peer.seen || (!peer.outbox.is_empty() && peer.out.room() > 0)) return true;
  }
  return false;
}

void ProcessEnd::idle(double seconds) {
  const double end = os::seconds() + std::min(seconds, kSpin);
  do {
    for (int i = 0; i < 32; ++i) {
      if (has_news()) return;
      spin_pause();
    }
    std::this_thread::yield();  // the awaited rank may need this core
  } while (os::seconds() < end);
  const bool waits_for_room = std::any_of(peers_.begin(), peers_.end(), [](const Peer& peer) { return !peer.outbox.is_empty(); });
  const auto wait = waits_for_room ? SharedSegment::for_room : SharedSegment::for_bytes;
  auto& asleep = segment().slot(rank_).asleep;
  asleep.store(wait);
  if (!has_news()) segment().sleep(rank_, wait, std::min(seconds, kSleep));
  asleep.store(0);
}

}  // namespace

std::unique_ptr<Transport> join_process_group(const ProcessGroupOptions& options) {
  check(options.size >= 1 && options.size <= kMaxProcessRanks, "process group: size must be 1 to ", kMaxProcessRanks, " ranks, got ",
        options.size);
  check(options.rank >= 0 && options.rank < options.size, "process group: rank must be 0 to ", options.size - 1, ", got ", options.rank);
  check(options.ring_bytes == 0 ||
            (options.ring_bytes >= 4096 && options.ring_bytes <= kMaxRingBytes && (options.ring_bytes & (options.ring_bytes - 1)) == 0),
        "process group: ring_bytes must be 0, or a power of two from 4096 to 1 GiB, got ", options.ring_bytes);
  check(!options.job.empty(), "process group: the job name must not be empty");
  return std::make_unique<ProcessEnd>(meet(options), options.rank);
}

}  // namespace st
