// Calls that read weights or state come in pairs: the local one reads what this rank has, the collective one is made by all ranks.
#pragma once

#include <string>
#include <string_view>

#include "model_object.h"
#include "trainer_object.h"

namespace st::capi {

/// Which of the two the host has called.
enum class Reach { local, collective };

/// Throws wrong_state, naming the collective call, if `needs_others`. `call`: "st_model_get"; `holder`: "rank 1 of 2 (zero 3)"; `what`:
/// what would be read, "all parameters".
void require_local(bool needs_others, std::string_view call, std::string_view holder, std::string_view what);
/// The same for a call on the parameters of a model.
void require_local(const ModelObject& model, std::string_view call, std::string_view what);
/// The same for a call on the state of a trainer.
void require_local(const TrainerObject& trainer, std::string_view call, std::string_view what);

}  // namespace st::capi
