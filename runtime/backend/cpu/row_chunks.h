// Long rows are added in chunks, each a task: for the kernel, and for what it needs of memory.
#pragma once

#include "backend/cpu/grain.h"

namespace st::cpu {

constexpr int64_t chunks_of(int64_t row) { return std::max<int64_t>(1, tasks_of(row)); }

}  // namespace st::cpu
