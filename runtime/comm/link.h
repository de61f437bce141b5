// One-way links between ranks, whose messages pass while the ranks compute, as between the stages of a pipeline.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/work_queue.h"
#include "comm/communicator.h"
#include "comm/hand_over.h"

namespace st {

/// One rank's end of a link, used by one thread. Messages arrive in order. Errors are those of Communicator, and end the group that the
/// link was made from. Allocates for as many messages as were not waited for at the same time.
///   between processes   a thread at each end sends or receives
///   between threads     the computing threads hand messages over themselves (HandOver); a thread for it would wait for a core
class Link {
 public:
  /// `group`: of the two ends, for this link alone.
  explicit Link(std::unique_ptr<Communicator> group) : group_(std::move(group)) {}
  /// Between threads: both ends have the same `hand_over`. `options`: how long this end waits.
  Link(std::unique_ptr<Communicator> group, std::shared_ptr<HandOver> hand_over, CommunicatorOptions options)
      : group_(std::move(group)), hand_over_(std::move(hand_over)), options_(std::move(options)), started_bytes_(group_->sent_bytes()) {}
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // `data` and `label` are borrowed until the message has been sent, or received; the number returned counts messages, from 1.
  int64_t post(const void* data, int64_t elements, DType dtype, std::string_view label);
  int64_t expect(void* data, int64_t elements, DType dtype, std::string_view label);
  /// Waits until messages up to this one are sent, or received. Throws what the first one threw that was not.
  void wait(int64_t message);
  /// Receives the next message on the calling thread, with nothing expected.
  void receive(void* data, int64_t elements, DType dtype, std::string_view label);

  // Messages whose elements move without the link, each end's from or to memory of its own. All messages of such a link are passed like
  // this.

  /// Moves a message, once the other end's does too: `ends` is the group of the two, for collectives of theirs.
  class Carrier {
   public:
    virtual void carry(Communicator& ends) = 0;

   protected:
    ~Carrier() = default;
  };
  /// Like post(). The carrier is borrowed until the message has been sent; the link's thread or that of wait() calls it.
  int64_t post(Carrier& carrier);
  /// Like receive().
  void receive(Carrier& carrier);

  // A message whose elements move without the link, in a memory that both ends reach. All messages of such a link are passed like this.

  /// Whether both ends have messages in the same memory, which is not the host's (make_links).
  bool shares_memory() const { return hand_over_ && hand_over_->shares_memory(); }
  /// Like post(): gives the other end a number by which it finds the elements.
  int64_t offer(uint64_t number, int64_t elements, DType dtype);
  /// Gets the number of an offer. Returns whether it is still there; its elements are moved, or will be by work that has been given.
  using Take = std::function<bool(uint64_t number)>;
  /// Like receive(): waits for the next offer and calls `take` with it. The message counts as sent when that returns.
  void take(int64_t elements, DType dtype, const Take& take);

  void abort(const char* why) noexcept {
    group_->abort(why);
    if (hand_over_) hand_over_->end();
  }
  int64_t sent_bytes() const { return is_by_hand() ? handed_bytes_ : group_->sent_bytes() - started_bytes_; }

 private:
  struct Message final : WorkQueue::Work {
    explicit Message(Communicator& of) : group(of) {}
    void run() override;

    Communicator& group;
    bool comes = false;  // it is to be received
    void* data = nullptr;
    int64_t elements = 0;
    DType dtype = DType::f32;
    std::string_view label;
    Carrier* carrier = nullptr;  // null: the group moves the elements
  };
  bool is_by_hand() const { return hand_over_ && !is_carried_; }
  int64_t add(bool comes, void* data, int64_t elements, DType dtype, std::string_view label);
  Message& next();
  int64_t hand(HandOver::Side side, void* data, int64_t bytes);
  void await_handed(int64_t message);
  void check_for_end(double began);
  void let_be_taken() noexcept;

  std::unique_ptr<Communicator> group_;
  std::shared_ptr<HandOver> hand_over_;  // null: between processes
  CommunicatorOptions options_;          // with hand_over_
  int64_t started_bytes_ = 0;            // that the start of this link has sent, which is not of messages
  bool is_carried_ = false;              // its messages have carriers
  HandOver::Side side_ = HandOver::Side::sends;
  int64_t handed_bytes_ = 0;
  std::vector<std::unique_ptr<Message>> messages_;  // a ring: message n is at (n - 1) % its size
  int64_t posted_ = 0, forgotten_ = 0;              // those after forgotten_ are in use
  WorkQueue queue_;                                 // last, since its work uses the others
};

struct LinkEnds {
  int32_t from, to;  // ranks
};

/// Collective call: this rank's ends of these links, which are alike on all ranks, by index; null where it has none. `memory`: that of this
/// rank's messages (HandOver::set_memory).
std::vector<std::unique_ptr<Link>> make_links(Communicator& ranks, std::span<const LinkEnds> links, const CommunicatorOptions& options,
                                              const void* memory = nullptr);

}  // namespace st
