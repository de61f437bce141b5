// The collectives, and what must be equal on all ranks that take part in one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/dtype.h"
#include "base/reduce_op.h"

namespace st {

enum class Collective : int32_t {
  all_reduce = 1,
  reduce_scatter,
  all_gather,
  all_to_all,
  broadcast,
  send,
  receive,
  barrier,
  split,
  duplicate
};
std::string_view name_of(Collective collective);
bool is_reduction(Collective collective);

std::string_view name_of(ReduceOp op);

/// One collective as a rank calls it. Ranks must agree in everything except the label.
struct CollectiveCall {
  Collective what = Collective::barrier;
  ReduceOp op = ReduceOp::sum;
  DType dtype = DType::f32;
  int64_t elements = 0;    // of the whole tensor, as in communicator.h
  int32_t root = -1;       // broadcast: the source; send, receive: the other rank
  std::string_view label;  // a tensor or a bucket, for errors and the flight recorder
};

std::string text_of(const CollectiveCall& call);  // "all_reduce (sum) of 1024 f32", "send of 8 i64 to rank 2"

}  // namespace st
