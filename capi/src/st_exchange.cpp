// The collectives of st_communicator: checks the host's arguments, then runs the collective at once or queues it.
#include <scaletrain/communicator.h>

#include <string>

#include "base/utf8.h"
#include "communicator_object.h"
#include "exchange.h"
#include "guard.h"
#include "pending_object.h"

using namespace st;
using namespace st::capi;

namespace {

void perform(CommunicatorObject& object, const Exchange& exchange, uint64_t cancels) {
  object.cancels = cancels;
  make(*object.ranks, exchange);
}

/// Queues the exchange after pending work. If it throws, nothing has started.
void begin(CommunicatorObject& object, const Exchange& exchange, uint64_t cancels, st_pending** pending) {
  WorkQueue::Prepared prepared = object.queue.prepare([&object, exchange, cancels, label = std::string(exchange.call.label)] {
    Exchange ours = exchange;
    ours.call.label = label;
    perform(object, ours, cancels);
  });
  auto made = std::make_shared<PendingObject>();
  made->work = std::make_shared<Pending>();
  Pending& work = *made->work;
  hand_out(pending, std::move(made));
  object.queue.post(std::move(prepared), work);
}

st_status collective(st_communicator* communicator, const char* name, const Asked& asked, st_pending** pending,
                     const char* call = __builtin_FUNCTION()) {
  const auto body = [&] {
    const auto object = find(communicator);
    Exchange exchange = checked(asked, *object->ranks, call);
    if (name != nullptr) exchange.call.label = name;
    check(utf8_valid_until(exchange.call.label) == exchange.call.label.size(), call, ": name is not UTF-8");
    const uint64_t cancels = object->context->cancels();
    if (pending != nullptr) return begin(*object, exchange, cancels, pending);
    object->queue.drain();
    perform(*object, exchange, cancels);
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
