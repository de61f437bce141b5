// What ranks tell each other in words: facts that each knows of its own, and what has failed on one of them.
#pragma once

#include <exception>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.h"

namespace st {

/// Each rank's text, by rank; each at most 16 MiB. To be called by all ranks.
std::vector<std::string> gather_texts(Communicator& ranks, const std::string& own, std::string_view label);

/// What stands in front of the first 0 of several texts, which is taken off them with it.
std::string take_text(std::string_view& all);

/// Throws on all ranks where `own` (null: nothing failed here) is an error on some: the error of the first such rank, which others are told
/// with that rank's name. To be called by all ranks; the group is whole after that.
void require_all_fine(Communicator& ranks, const std::exception_ptr& own, std::string_view label);

/// All ranks meet, with what has failed on this one (or null); throws on all where something has.
using MeetOthers = std::function<void(const std::exception_ptr& own)>;

/// Makes `call`, which calls `meet` (require_all_fine) once, where what it may refuse is behind it; what it throws before is told the
/// others in that meeting. To be called by all ranks.
void meeting_once(Communicator& ranks, std::string_view label, const std::function<void(const MeetOthers& meet)>& call);

}  // namespace st
