// A host's collective call: its arrays are checked first, then exchanged at once or later.
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

/// Checks the arrays. Throws invalid_argument, or unsupported for gaps between elements; the message names the array and the problem.
Exchange checked(const Asked& asked, const Communicator& ranks, const char* call);

void make(Communicator& ranks, const Exchange& exchange);

/// Throws invalid_argument if there is no such rank; `role` is the host's name for it.
int32_t rank_given(const Communicator& ranks, const char* role, int32_t rank, const char* call);

}  // namespace st::capi
