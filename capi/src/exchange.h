// A collective as the host asked for it: its arrays are looked at first, and exchanged at once or later.
#pragma once

#include <scaletrain/communicator.h>

#include <cstdint>
#include <string_view>

#include "comm/communicator.h"

namespace st::capi {

struct Asked {
  Collective what;
  const st_view* first = nullptr;  // in the order of the prototype
  const st_view* second = nullptr;
  int32_t number = 0;  // st_reduce_op, or a rank
};

struct Exchange {
  CollectiveCall call;
  const void* from = nullptr;
  void* to = nullptr;
};

/// Throws invalid_argument, or unsupported for gaps between elements, and says which array is wrong in what.
Exchange looked_at(const Asked& asked, const Communicator& ranks, const char* call);

void make(Communicator& ranks, const Exchange& exchange);

/// Throws invalid_argument where there is no such rank; `role` is what the host calls it.
int32_t rank_given(const Communicator& ranks, const char* role, int32_t rank, const char* call);

}  // namespace st::capi
