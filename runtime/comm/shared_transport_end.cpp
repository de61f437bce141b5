// A group's end of a shared transport: a transport of that group's ranks.
#include <algorithm>
#include <mutex>
#include <utility>

#include "comm/shared_streams.h"

namespace st {

class SharedTransport::End final : public Transport {
 public:
  End(std::shared_ptr<SharedTransport> shared, uint32_t number, Group& group, std::vector<Member> members, int rank)
      : shared_(std::move(shared)), number_(number), group_(group), members_(std::move(members)), rank_(rank) {}
  ~End() override { shared_->leave(number_); }
  End(const End&) = delete;
  End& operator=(const End&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(members_.size()); }
  std::string_view name() const override { return whole().name(); }
  std::string host_of(int rank) const override { return whole().host_of(whole_rank(rank)); }
  bool is_of_threads() const override { return whole().is_of_threads(); }
  const Transport& whole() const override { return shared_->transport_; }
  int whole_rank(int rank) const override { return members_[static_cast<size_t>(rank)].rank; }

  void post(int to, std::span<const std::byte> bytes) override {
    if (to == rank_ || bytes.empty()) return;
    const std::lock_guard lock(shared_->mutex_);
    stream(to).posted.push_back(bytes);
    shared_->flush_soon(whole_rank(to));
  }
  bool is_sent(int to) const override {
    const std::lock_guard lock(shared_->mutex_);
    return to == rank_ || (stream(to).is_composed() && !stream(to).is_borrowed);
  }
  /// Where another group's elements are being sent to that rank, that group's thread remains until all has been handed over.
  bool is_handed_over(int to) const override {
    if (to == rank_) return true;
    const std::lock_guard lock(shared_->mutex_);
    const Stream* const borrowed = shared_->peers_[static_cast<size_t>(whole_rank(to))].borrowed;
    return stream(to).is_composed() && !shared_->is_credit_due(stream(to)) &&
           ((borrowed != nullptr && borrowed->group != &group_) || whole().is_handed_over(whole_rank(to)));
  }
  uint64_t read_by(int to) const override {
    if (to == rank_) return 0;
    const std::lock_guard lock(shared_->mutex_);
    return stream(to).taken_by_other + whole().read_by(whole_rank(to));
  }
  void withdraw() noexcept override {
    std::unique_lock lock(shared_->mutex_);
    shared_->withdraw(group_, lock);
  }

  std::span<const std::byte> arrived(int from) override {
    if (from == rank_) return {};
    const std::lock_guard lock(shared_->mutex_);
    const Stream& in = stream(from);
    const uint64_t at = in.taken & (shared_->window_ - 1);
    return {in.ring.get() + at, std::min(in.arrived - in.taken, shared_->window_ - at)};
  }
  void take(int from, int64_t bytes) override {
    const std::lock_guard lock(shared_->mutex_);
    stream(from).taken += static_cast<uint64_t>(bytes);
    if (shared_->is_credit_due(stream(from))) shared_->flush_soon(whole_rank(from));
  }

  bool progress() override {
    const std::lock_guard lock(shared_->mutex_);
    if (!shared_->is_idling_) shared_->pump();
    return std::exchange(group_.has_news, false);
  }
  void idle(double seconds) override {
    std::unique_lock lock(shared_->mutex_);
    shared_->idle(group_, lock, seconds);
  }

  std::optional<RankFailure> failure() override {
    const std::lock_guard lock(shared_->mutex_);
    if (!shared_->failure_ && !shared_->is_idling_) shared_->failure_ = shared_->transport_.failure();
    return shared_->failure_;
  }
  bool has_left(int rank) const override {
    if (rank == rank_) return false;
    const std::lock_guard lock(shared_->mutex_);
    return stream(rank).has_left || shared_->peers_[static_cast<size_t>(whole_rank(rank))].has_left;
  }
  double silence_of(int rank) const override { return whole().silence_of(whole_rank(rank)); }
  FlightBoard* board(int rank) const override { return number_ == kWhole ? whole().board(rank) : nullptr; }  // a board has one writer
  void abort(const RankFailure& failure) noexcept override { shared_->transport_.abort(failure); }
  void wake() noexcept override { shared_->transport_.wake(); }

 private:
  Stream& stream(int rank) const { return group_.streams.find(whole_rank(rank))->second; }

  const std::shared_ptr<SharedTransport> shared_;
  const uint32_t number_;
  Group& group_;
  const std::vector<Member> members_;
  const int rank_;
};

std::unique_ptr<Transport> SharedTransport::open(uint32_t number, std::vector<Member> members, int rank) {
  const std::lock_guard lock(mutex_);
  Group& group = *groups_.at(number);
  for (const Member& member : members) {
    if (member.rank == transport_.rank()) continue;
    stream(group, member.rank).number = member.group;
    Peer& peer = peers_[static_cast<size_t>(member.rank)];
    peer.farewells.reserve(peer.farewells.size() + groups_.size());  // so that leaving needs no memory
  }
  return std::make_unique<End>(shared_from_this(), number, group, std::move(members), rank);
}

}  // namespace st
