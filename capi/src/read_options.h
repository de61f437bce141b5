// How a host says which tensors it wants, and under which names: st_model_read's options, which loads and resumes take too.
#pragma once

#include <scaletrain/model.h>

#include <cstddef>

#include "guard.h"
#include "train/weights_match.h"

namespace st::capi {

template <>
inline constexpr uint32_t kFirstSize<st_read_options> = offsetof(st_read_options, name_count);

/// NULL: the defaults. `call` goes before messages.
ReadOptions read_options(const st_read_options* theirs, const char* call);

}  // namespace st::capi
