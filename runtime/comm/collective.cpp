#include "comm/collective.h"

#include "base/text.h"

namespace st {

std::string_view name_of(Collective collective) {
  switch (collective) {
    case Collective::all_reduce:
      return "all_reduce";
    case Collective::reduce_scatter:
      return "reduce_scatter";
    case Collective::all_gather:
      return "all_gather";
    case Collective::all_to_all:
      return "all_to_all";
    case Collective::broadcast:
      return "broadcast";
    case Collective::send:
      return "send";
    case Collective::receive:
      return "receive";
    case Collective::barrier:
      return "barrier";
    case Collective::split:
      return "split";
    case Collective::duplicate:
      return "duplicate";
  }
  return "unknown collective";  // a damaged header may hold any value
}

std::string_view name_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return "sum";
    case ReduceOp::mean:
      return "mean";
    case ReduceOp::max:
      return "max";
    case ReduceOp::min:
      return "min";
  }
  return "unknown op";
}

bool is_reduction(Collective collective) { return collective == Collective::all_reduce || collective == Collective::reduce_scatter; }

std::string text_of(const CollectiveCall& call) {
  std::string out(name_of(call.what));
  if (call.what >= Collective::barrier && call.what <= Collective::duplicate) return out;
  if (is_reduction(call.what)) out += text(" (", name_of(call.op), ')');
  out += text(" of ", call.elements, ' ', name_of(call.dtype));
  if (call.root < 0) return out;
  return out + text(call.what == Collective::send ? " to rank " : " from rank ", call.root);
}

}  // namespace st
