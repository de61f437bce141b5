#include "exchange.h"

#include "base/error.h"
#include "views.h"

namespace st::capi {
namespace {

/// An array that is exchanged in place, without a copy.
struct PlainArray {
  PlainArray(std::string_view name, const st_view* view, const char* call) : role(name) {
    const HostView ours = read_view(name, view, call);
    check(ours.dtype != DType::boolean, call, ": \"", name, "\" is ", ours.dtype, "; view its bytes as ST_U8");
    dtype = ours.dtype;
    elements = ours.shape.elements();
    data = static_cast<std::byte*>(ours.data);
    require(elements == 0 || ours.is_plain(), Code::unsupported, call, ": \"", name, "\" of shape ", ours.shape,
            " has gaps between its elements or is misaligned; copy it to contiguous, aligned memory first");
  }
  int64_t bytes() const { return elements * bytes_of(dtype); }
  bool shares_memory_with(const PlainArray& other) const {
    return bytes() > 0 && other.bytes() > 0 && data < other.data + other.bytes() && other.data < data + bytes();
  }

  std::string_view role;
  DType dtype = DType::f32;
  int64_t elements = 0;
  std::byte* data = nullptr;
};

void require_alike(const PlainArray& a, const PlainArray& b, const char* call) {
  check(a.dtype == b.dtype, call, ": \"", a.role, "\" is ", a.dtype, ", \"", b.role, "\" is ", b.dtype, "; give both the same dtype");
}

/// `own` must be this rank's share of `whole`, in place or in separate memory.
void require_share(const PlainArray& own, const PlainArray& whole, const Communicator& ranks, const char* call) {
  require_alike(own, whole, call);
  const int rank = ranks.rank();
  const int64_t begin = ranks.share(whole.elements, rank), count = ranks.share(whole.elements, rank + 1) - begin;
  check(own.elements == count, call, ": \"own\" has ", own.elements, " elements, but rank ", rank, "'s share of the ", whole.elements,
        " of \"whole\" is ", count, "; st_communicator_share returns this number");
  check(own.data == whole.data + begin * bytes_of(whole.dtype) || !own.shares_memory_with(whole), call,
        ": \"own\" is inside \"whole\", but not at rank ", rank, "'s share, which starts at element ", begin,
        "; place it there or in separate memory");
}

/// Equal shares for all ranks, in separate memory.
void require_parts(const PlainArray& from, const PlainArray& to, const Communicator& ranks, const char* call) {
  require_alike(from, to, call);
  check(from.elements == to.elements && from.elements % ranks.size() == 0, call, ": \"from\" has ", from.elements, " elements, \"to\" has ",
        to.elements, "; both must have the same number, a multiple of the ", ranks.size(), " ranks");
  check(!from.shares_memory_with(to), call, ": \"from\" and \"to\" share memory; give each its own");
}

ReduceOp reduce_op(st_reduce_op op, DType dtype, const char* call) {
  check(op >= ST_REDUCE_SUM && op <= ST_REDUCE_MIN, call, ": op is ", op, "; use one of ST_REDUCE_SUM to ST_REDUCE_MIN");
  check(op != ST_REDUCE_MEAN || is_floating(dtype), call, ": the mean of ", dtype, " is not ", dtype, "; use ST_REDUCE_SUM and divide");
  return static_cast<ReduceOp>(op);
}

int32_t other_rank(const Communicator& ranks, const char* role, int32_t rank, const char* call) {
  check(rank_given(ranks, role, rank, call) != ranks.rank(), call, ": ", role, " is ", rank, ", which is this rank; name another one");
  return rank;
}

}  // namespace

int32_t rank_given(const Communicator& ranks, const char* role, int32_t rank, const char* call) {
  check(rank >= 0 && rank < ranks.size(), call, ": ", role, " is ", rank, "; ranks are 0 to ", ranks.size() - 1);
  return rank;
}

Exchange checked(const Asked& asked, const Communicator& ranks, const char* call) {
  Exchange made;
  made.call.what = asked.what;
  const auto of = [&](const PlainArray& whole, const void* from, void* to) {
    made.call.dtype = whole.dtype;
    made.call.elements = whole.elements;
    made.from = from;
    made.to = to;
  };
  switch (asked.what) {
    case Collective::all_reduce: {
      const PlainArray view("view", asked.first, call);
      made.call.op = reduce_op(asked.number, view.dtype, call);
      of(view, nullptr, view.data);
      break;
    }
    case Collective::reduce_scatter: {
      const PlainArray whole("whole", asked.first, call), own("own", asked.second, call);
      require_share(own, whole, ranks, call);
      made.call.op = reduce_op(asked.number, whole.dtype, call);
      of(whole, whole.data, own.data);
      break;
    }
    case Collective::all_gather: {
      const PlainArray own("own", asked.first, call), whole("whole", asked.second, call);
      require_share(own, whole, ranks, call);
      of(whole, own.data, whole.data);
      break;
    }
    case Collective::all_to_all: {
      const PlainArray from("from", asked.first, call), to("to", asked.second, call);
      require_parts(from, to, ranks, call);
      of(from, from.data, to.data);
      break;
    }
    case Collective::broadcast:
    case Collective::send:
    case Collective::receive: {
      const PlainArray view("view", asked.first, call);
      const bool sends = asked.what == Collective::send;
      made.call.root = asked.what == Collective::broadcast ? rank_given(ranks, "root", asked.number, call)
                                                           : other_rank(ranks, sends ? "to" : "from", asked.number, call);
      of(view, sends ? view.data : nullptr, sends ? nullptr : view.data);
      break;
    }
    case Collective::barrier:
    case Collective::split:
    case Collective::duplicate:
      break;
  }
  return made;
}

void make(Communicator& ranks, const Exchange& exchange) {
  const auto& [what, op, dtype, elements, root, label] = exchange.call;
  switch (what) {
    case Collective::all_reduce:
      return ranks.all_reduce(exchange.to, elements, dtype, op, label);
    case Collective::reduce_scatter:
      return ranks.reduce_scatter(exchange.from, exchange.to, elements, dtype, op, label);
    case Collective::all_gather:
      return ranks.all_gather(exchange.from, exchange.to, elements, dtype, label);
    case Collective::all_to_all:
      return ranks.all_to_all(exchange.from, exchange.to, elements, dtype, label);
    case Collective::broadcast:
      return ranks.broadcast(exchange.to, elements, dtype, root, label);
    case Collective::send:
      return ranks.send(exchange.from, elements, dtype, root, label);
    case Collective::receive:
      return ranks.receive(exchange.to, elements, dtype, root, label);
    case Collective::barrier:
      return ranks.barrier(label);
    case Collective::split:
    case Collective::duplicate:
      break;  // these are no exchange of arrays
  }
}

}  // namespace st::capi
