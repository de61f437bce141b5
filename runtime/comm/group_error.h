// The error that one rank throws when its group has ended: which rank, where, in which collective, and the collectives before it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "comm/collective.h"
#include "comm/flight_recorder.h"
#include "comm/transport.h"

namespace st {

/// A running collective, for messages.
struct CallUnderWay {
  CollectiveCall call;
  uint64_t sequence = 0;

  std::string text() const;  // "all_reduce (sum) of 1024 f32 (bucket.3, #41)"
};

/// The error for a failure that this rank found or received; error.place holds rank, host, collective and tensor.
Error group_error(const RankFailure& failure, const CallUnderWay& here, const Transport& transport, const FlightRecorder& recorder);

/// As text_of_rank() of communicator.h, by its number in the whole group; it may be in another group: "rank 4 (not in this group; ..)".
std::string text_of_whole_rank(const Transport& transport, int rank);

}  // namespace st
