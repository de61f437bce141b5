// Messages that must have left before a buffer of the stash is written, in memory that the chunks of a stage share.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/memory.h"
#include "plan/step_order.h"

namespace st {

/// A node that sends from a buffer of a chunk.
struct BufferSend {
  int32_t section, node;
};

/// By run of the order: the sends whose last messages from this memory must have left before the run, with which a chunk's buffer begins.
/// Those of the chunk whose buffer was there before in this step; if it is the first one, those of all chunks that have one there, since a
/// step may leave out its last micro-batches. At one place micro-batches only increase, whichever their chunks, so that a step that leaves
/// out the last ones leaves out the last buffers of a place. Empty where chunks share no memory.
std::vector<std::vector<BufferSend>> buffer_releases(const Program& program, const MemoryLayout& memory, const StepOrder& order);

}  // namespace st
