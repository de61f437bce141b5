// What the report page and the plan's JSON say of a trainer.
#pragma once

#include <string>
#include <string_view>

#include "train/report.h"
#include "trainer_object.h"

namespace st::capi {

/// facts: the host's JSON: "title", "subtitle", "bigram_loss", "prompt" and "sample" have places of their own; a key with an object becomes
/// a small table of that name.
RunSummary summary_of(const TrainerObject& trainer, std::string_view facts);

/// {"ranks":[{"memory":{...},...}]}, the numbers of `scaletrain plan --json`, of the ranks in this process.
std::string plan_json(const Trainer& trainer);

}  // namespace st::capi
