// What ended a group, said on one rank: who, where, in which collective, and what was done before.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "comm/collective.h"
#include "comm/flight_recorder.h"
#include "comm/transport.h"

namespace st {

/// A collective under way, for texts.
struct CallUnderWay {
  CollectiveCall call;
  uint64_t sequence = 0;

  std::string text() const;  // "all_reduce (sum) of 1024 f32 (bucket.3, #41)"
};

/// The error of a failure that this rank has found or was told of, with its place as data.
Error group_error(const RankFailure& failure, const CallUnderWay& here, const Transport& transport, const FlightRecorder& recorder);

/// "rank 2 (node7, process 4711)"
std::string text_of_rank(const Transport& transport, int rank);

/// Throws rank_mismatch with that rank and its host as data, and the tensor, "" where it is none's: what all ranks have found together.
[[noreturn]] void refuse_rank(const Transport& transport, int rank, std::string_view tensor, std::string message);

}  // namespace st
