// The facts about a trainer in the report page and in the plan's JSON.
#pragma once

#include <string>
#include <string_view>

#include "report/report.h"
#include "trainer_object.h"

namespace st::capi {

/// facts: the host's JSON. "title", "subtitle", "bigram_loss", "prompt" and "sample" have fixed places; any other key whose value is an
/// object becomes a small table of that name.
RunSummary summary_of(const TrainerObject& trainer, std::string_view facts);

/// {"ranks":[{"memory":{...},...}]}: the numbers of `scaletrain plan --json` for the ranks in this process.
std::string plan_json(const Trainer& trainer);

}  // namespace st::capi
