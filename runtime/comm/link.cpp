#include "comm/link.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "base/os/machine.h"

namespace st {

namespace {

constexpr double kWake = 0.05;  // longest sleep in seconds: how soon a cancellation is seen

/// Objects that senders offer to receivers in this process, by number. One whose sender has failed is gone, not a wild address.
class Offers {
 public:
  uint64_t add(const std::shared_ptr<HandOver>& offered) {
    const std::lock_guard lock(mutex_);
    offers_.emplace(++last_, offered);
    return last_;
  }
  std::shared_ptr<HandOver> find(uint64_t number) {
    const std::lock_guard lock(mutex_);
    const auto found = offers_.find(number);
    return found == offers_.end() ? nullptr : found->second.lock();
  }
  void remove(uint64_t number) noexcept {
    const std::lock_guard lock(mutex_);
    offers_.erase(number);
  }

 private:
  std::mutex mutex_;
  uint64_t last_ = 0;
  std::map<uint64_t, std::weak_ptr<HandOver>> offers_;
};

/// The same object at both ends, which are threads of this process.
std::shared_ptr<HandOver> shared_hand_over(Communicator& group, bool is_sender, const void* memory) {
  static Offers offers;
  struct Offer {
    uint64_t number = 0;
    ~Offer() { offers.remove(number); }
  } offer;  // until both have it, or the group has ended
  std::shared_ptr<HandOver> shared = is_sender ? std::make_shared<HandOver>() : nullptr;
  if (is_sender) offer.number = offers.add(shared);
  uint64_t number = offer.number;
  group.broadcast(&number, sizeof number, DType::u8, is_sender ? group.rank() : 1 - group.rank(), "link");
  if (!is_sender) shared = offers.find(number);
  if (shared) shared->set_memory(is_sender ? HandOver::Side::sends : HandOver::Side::receives, memory);
  group.barrier("link");
  require(shared != nullptr, Code::internal, "link: the sender's end is not in this process");
  return shared;
}

}  // namespace

Link::~Link() {
  if (hand_over_) {
    if (side_ == HandOver::Side::sends && !is_carried_) let_be_taken();
    hand_over_->end();
  }
  queue_.drain();
}

/// Posted messages still arrive, unless the other end is gone or late.
void Link::let_be_taken() noexcept {
  for (const double began = os::seconds(); !hand_over_->wait(side_, posted_, kWake);)
    if (hand_over_->has_ended() || group_->has_ended() || os::seconds() - began > options_.deadline) return;
}

/// The next message, of any content.
Link::Message& Link::next() {
  const size_t size = messages_.size();
  if (posted_ - forgotten_ == std::ssize(messages_)) {
    std::vector<std::unique_ptr<Message>> more(std::max<size_t>(4, 2 * size));
    for (int64_t n = forgotten_; n < posted_; ++n)
      more[static_cast<size_t>(n) % more.size()] = std::move(messages_[static_cast<size_t>(n) % size]);
    for (auto& message : more)
      if (!message) message = std::make_unique<Message>(*group_);
    messages_ = std::move(more);
  }
  return *messages_[static_cast<size_t>(posted_) % messages_.size()];
}

int64_t Link::add(bool comes, void* data, int64_t elements, DType dtype, std::string_view label) {
  Message& message = next();
  message.comes = comes;
  message.data = data;
  message.elements = elements;
  message.dtype = dtype;
  message.label = label;
  message.carrier = nullptr;
  queue_.post(message);
  return ++posted_;
}

int64_t Link::post(Carrier& carrier) {
  assert(is_carried_ || posted_ == 0);  // a link has carriers from its first message on, or none
  is_carried_ = true;
  Message& message = next();
  message.carrier = &carrier;
  queue_.post(message);
  return ++posted_;
}

void Link::receive(Carrier& carrier) {
  is_carried_ = true;
  carrier.carry(*group_);
}

void Link::Message::run() {
  if (carrier != nullptr) return carrier->carry(group);
  const int other = 1 - group.rank();
  if (comes)
    group.receive(data, elements, dtype, other, label);
  else
    group.send(data, elements, dtype, other, label);
}

int64_t Link::post(const void* data, int64_t elements, DType dtype, std::string_view label) {
  if (!hand_over_) return add(false, const_cast<void*>(data), elements, dtype, label);
  handed_bytes_ += elements * bytes_of(dtype);
  return hand(HandOver::Side::sends, const_cast<void*>(data), elements * bytes_of(dtype));
}

int64_t Link::expect(void* data, int64_t elements, DType dtype, std::string_view label) {
  return hand_over_ ? hand(HandOver::Side::receives, data, elements * bytes_of(dtype)) : add(true, data, elements, dtype, label);
}

void Link::receive(void* data, int64_t elements, DType dtype, std::string_view label) {
  if (hand_over_) return await_handed(hand(HandOver::Side::receives, data, elements * bytes_of(dtype)));
  group_->receive(data, elements, dtype, 1 - group_->rank(), label);
}

int64_t Link::hand(HandOver::Side side, void* data, int64_t bytes) {
  side_ = side;
  hand_over_->add(side, data, bytes);
  return ++posted_;
}

/// The group knows why a wait must end, and says it.
void Link::await_handed(int64_t message) {
  for (const double began = os::seconds(); !hand_over_->wait(side_, message, kWake);) check_for_end(began);
}

void Link::check_for_end(double began) {
  require(!hand_over_->differs(), Code::rank_mismatch, "link: the two ranks give different sizes of a message");
  const bool is_late = !options_.waits_for_living && os::seconds() - began > options_.deadline;
  const bool is_over = hand_over_->has_ended() || group_->has_ended() || (options_.is_cancelled && options_.is_cancelled());
  if (is_over || is_late) group_->barrier("message");
}

int64_t Link::offer(uint64_t number, int64_t elements, DType dtype) {
  handed_bytes_ += elements * bytes_of(dtype);
  side_ = HandOver::Side::sends;
  hand_over_->offer(number, elements * bytes_of(dtype));
  return ++posted_;
}

void Link::take(int64_t elements, DType dtype, const Take& take) {
  side_ = HandOver::Side::receives;
  ++posted_;
  for (const double began = os::seconds();; check_for_end(began)) {
    const std::optional<uint64_t> number = hand_over_->offered(elements * bytes_of(dtype), kWake);
    if (!number) continue;
    if (take(*number)) return hand_over_->taken();
    hand_over_->end();  // the sender has failed or left, and nothing of it will be taken
    group_->barrier("message");
  }
}

void Link::wait(int64_t message) {
  if (is_by_hand()) return await_handed(message);
  for (; forgotten_ < message; ++forgotten_) queue_.wait(*messages_[static_cast<size_t>(forgotten_) % messages_.size()]);
}

std::vector<std::unique_ptr<Link>> make_links(Communicator& ranks, std::span<const LinkEnds> links, const CommunicatorOptions& options,
                                              const void* memory) {
  std::vector<std::unique_ptr<Link>> made(links.size());
  // A split makes the groups of all links of a round, in which a rank has one link at most.
  std::vector<bool> is_made(links.size());
  for (bool is_over = false; !is_over;) {
    is_over = true;
    std::vector<bool> has_link(static_cast<size_t>(ranks.size()));
    int32_t color = ranks.size() + ranks.rank();  // without a link in this round: alone
    size_t own = links.size();
    for (size_t i = 0; i < links.size(); ++i) {
      const auto [from, to] = links[i];
      check(from >= 0 && from < ranks.size() && to >= 0 && to < ranks.size() && from != to, "link: from rank ", from, " to ", to, " of ",
            ranks.size());
      if (is_made[i] || has_link[static_cast<size_t>(from)] || has_link[static_cast<size_t>(to)]) continue;
      has_link[static_cast<size_t>(from)] = has_link[static_cast<size_t>(to)] = is_made[i] = true;
      is_over = false;
      if (ranks.rank() != from && ranks.rank() != to) continue;
      color = std::min(from, to);
      own = i;
    }
    if (is_over) break;
    auto group = ranks.split(color, ranks.rank(), options, true);
    if (own == links.size()) continue;
    std::shared_ptr<HandOver> hand_over;
    if (group->transport_name() == "threads") hand_over = shared_hand_over(*group, ranks.rank() == links[own].from, memory);
    made[own] =
        hand_over ? std::make_unique<Link>(std::move(group), std::move(hand_over), options) : std::make_unique<Link>(std::move(group));
  }
  return made;
}

}  // namespace st
