// The collectives of st_communicator: checks the host's arguments, then runs the collective at once or queues it.
#include <scaletrain/communicator.h>

#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "base/utf8.h"
#include "communicator_object.h"
#include "exchange.h"
#include "guard.h"
#include "pending_object.h"

using namespace st;
using namespace st::capi;

namespace {

/// An exchange of a host, after the pending work.
class PendingExchange final : public WorkQueue::Work {
 public:
  PendingExchange(Communicator& ranks, const Exchange& exchange) : ranks_(ranks), exchange_(exchange), label_(exchange.call.label) {
    exchange_.call.label = label_;
  }

  Pending& pending() { return pending_; }
  void run() override {
    std::exception_ptr error;
    try {
      make(ranks_, exchange_);
    } catch (...) {
      error = std::current_exception();
    }
    pending_.end(std::move(error));
  }

 private:
  Communicator& ranks_;
  Exchange exchange_;
  const std::string label_;
  Pending pending_;  // last: its end waits for run(), which uses the others
};

/// If it throws, nothing has started.
void begin(CommunicatorObject& object, const Exchange& exchange, st_pending** pending) {
  object.queue.start();
  auto made = std::make_shared<PendingObject>();
  auto work = std::make_shared<PendingExchange>(*object.ranks, exchange);
  made->work = std::shared_ptr<Pending>(work, &work->pending());
  hand_out(pending, std::move(made));
  work->pending().begin();
  object.queue.post(*work);
}

st_status collective(st_communicator* communicator, const char* name, const Asked& asked, st_pending** pending,
                     const char* call = __builtin_FUNCTION()) {
  const auto body = [&] {
    const auto object = find(communicator);
    Exchange exchange = checked(asked, *object->ranks, call);
    if (name != nullptr) exchange.call.label = name;
    check(utf8_valid_until(exchange.call.label) == exchange.call.label.size(), call, ": name is not UTF-8");
    const uint64_t cancels = object->context->cancels();
    if (pending != nullptr) return begin(*object, exchange, pending);
    object->queue.drain();
    object->cancels = cancels;
    make(*object->ranks, exchange);
  };
  return guard(body, call);
}

}  // namespace

st_status st_communicator_all_reduce(st_communicator* communicator, const char* name, const st_view* view, st_reduce_op op,
                                     st_pending** pending) {
  return collective(communicator, name, {.what = Collective::all_reduce, .first = view, .second = nullptr, .number = op}, pending);
}

st_status st_communicator_reduce_scatter(st_communicator* communicator, const char* name, const st_view* whole, const st_view* own,
                                         st_reduce_op op, st_pending** pending) {
  return collective(communicator, name, {.what = Collective::reduce_scatter, .first = whole, .second = own, .number = op}, pending);
}

st_status st_communicator_all_gather(st_communicator* communicator, const char* name, const st_view* own, const st_view* whole,
                                     st_pending** pending) {
  return collective(communicator, name, {.what = Collective::all_gather, .first = own, .second = whole, .number = 0}, pending);
}

st_status st_communicator_all_to_all(st_communicator* communicator, const char* name, const st_view* from, const st_view* to,
                                     st_pending** pending) {
  return collective(communicator, name, {.what = Collective::all_to_all, .first = from, .second = to, .number = 0}, pending);
}

st_status st_communicator_broadcast(st_communicator* communicator, const char* name, const st_view* view, int32_t root,
                                    st_pending** pending) {
  return collective(communicator, name, {.what = Collective::broadcast, .first = view, .second = nullptr, .number = root}, pending);
}

st_status st_communicator_send(st_communicator* communicator, const char* name, const st_view* view, int32_t to, st_pending** pending) {
  return collective(communicator, name, {.what = Collective::send, .first = view, .second = nullptr, .number = to}, pending);
}

st_status st_communicator_receive(st_communicator* communicator, const char* name, const st_view* view, int32_t from,
                                  st_pending** pending) {
  return collective(communicator, name, {.what = Collective::receive, .first = view, .second = nullptr, .number = from}, pending);
}

st_status st_communicator_barrier(st_communicator* communicator, const char* name, st_pending** pending) {
  return collective(communicator, name, {.what = Collective::barrier, .first = nullptr, .second = nullptr, .number = 0}, pending);
}
