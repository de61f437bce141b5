// A host's choice of tensors and their names: the options of st_model_read, which loads and resumes also take.
#pragma once

#include <scaletrain/model.h>

#include <cstddef>

#include "guard.h"
#include "model/weights_match.h"

namespace st::capi {

template <>
inline constexpr uint32_t kFirstSize<st_read_options> = offsetof(st_read_options, name_count);

/// NULL: the defaults. `call` prefixes messages.
ReadOptions read_options(const st_read_options* theirs, const char* call);

}  // namespace st::capi
