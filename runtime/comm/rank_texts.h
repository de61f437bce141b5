// Texts that ranks exchange: facts about each rank, and errors of one of them.
#pragma once

#include <exception>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.h"

namespace st {

/// Each rank's text, by rank; each at most 16 MiB. Collective call.
std::vector<std::string> gather_texts(Communicator& ranks, const std::string& own, std::string_view label);

/// Removes the first of several texts separated by 0, together with its 0, and returns it.
std::string take_text(std::string_view& all);

/// Collective call. If `own` (null: success) is an error on any rank, throws the error of the first such rank on all ranks; the other
/// ranks' message begins with that rank's name. The group stays usable.
void require_all_fine(Communicator& ranks, const std::exception_ptr& own, std::string_view label);

/// Synchronises all ranks with this rank's error (null: success); throws on all ranks if any has one.
using MeetOthers = std::function<void(const std::exception_ptr& own)>;

/// Collective call. Runs `call`, which calls `meet` (require_all_fine) once, after all its argument checks; an error before that is
/// reported to the other ranks in the same synchronisation.
void meeting_once(Communicator& ranks, std::string_view label, const std::function<void(const MeetOthers& meet)>& call);

}  // namespace st
