#include "comm/link.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace st {

Link::~Link() { queue_.drain(); }

int64_t Link::queue(std::function<void()> work) {
  auto prepared = queue_.prepare(std::move(work));
  Pending& pending = posted_.emplace_back();
  queue_.post(std::move(prepared), pending);
  return forgotten_ + std::ssize(posted_);
}

int64_t Link::post(const void* data, int64_t elements, DType dtype, std::string label) {
  return queue([this, data, elements, dtype, label = std::move(label)] { group_->send(data, elements, dtype, 1 - group_->rank(), label); });
}

int64_t Link::expect(void* data, int64_t elements, DType dtype, std::string label) {
  return queue(
      [this, data, elements, dtype, label = std::move(label)] { group_->receive(data, elements, dtype, 1 - group_->rank(), label); });
}

void Link::wait(int64_t message) {
  for (; forgotten_ < message; ++forgotten_) {
    posted_.front().wait(-1);
    posted_.pop_front();
  }
}

std::vector<std::unique_ptr<Link>> make_links(Communicator& ranks, std::span<const LinkEnds> links, const CommunicatorOptions& options) {
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
    if (own < links.size()) made[own] = std::make_unique<Link>(std::move(group));
  }
  return made;
}

}  // namespace st
