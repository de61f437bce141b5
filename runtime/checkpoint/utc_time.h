// The time at which a checkpoint was saved, for people.
#pragma once

#include <string>

namespace st {

/// Now: "2026-11-24T10:44:11Z".
std::string utc_time();

}  // namespace st
