// One-way links between ranks: a thread at each end sends or receives while the rank computes, as between the stages of a pipeline.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/work_queue.h"
#include "comm/communicator.h"

namespace st {

/// One rank's end of a link, used by one thread. Messages arrive in order. Errors are those of Communicator, and end the group that the
/// link was made from.
class Link {
 public:
  /// `group`: of the two ends, for this link alone.
  explicit Link(std::unique_ptr<Communicator> group) : group_(std::move(group)) {}
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // `data` is borrowed until the message has been sent, or received; the number returned counts messages, from 1.
  int64_t post(const void* data, int64_t elements, DType dtype, std::string label);
  int64_t expect(void* data, int64_t elements, DType dtype, std::string label);
  /// Waits until messages up to this one are sent, or received. Throws what the first one threw that was not.
  void wait(int64_t message);
  /// Receives the next message on the calling thread, with nothing expected.
  void receive(void* data, int64_t elements, DType dtype, std::string_view label) {
    group_->receive(data, elements, dtype, 1 - group_->rank(), label);
  }
  void abort(const char* why) noexcept { group_->abort(why); }
  int64_t sent_bytes() const { return group_->sent_bytes(); }

 private:
  int64_t queue(std::function<void()> work);

  std::unique_ptr<Communicator> group_;
  std::deque<Pending> posted_;  // messages forgotten_ + 1 and on
  int64_t forgotten_ = 0;
  WorkQueue queue_;  // last, since its work uses the others
};

struct LinkEnds {
  int32_t from, to;  // ranks
};

/// Collective call: this rank's ends of these links, which are alike on all ranks, by index; null where it has none.
std::vector<std::unique_ptr<Link>> make_links(Communicator& ranks, std::span<const LinkEnds> links, const CommunicatorOptions& options);

}  // namespace st
