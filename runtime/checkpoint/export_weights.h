// A checkpoint as one safetensors file, for other tools.
#pragma once

#include <string>

#include "checkpoint/checkpoint_reader.h"

namespace st {

/// Writes the parameters, or, with `everything`, all tensors; of a host's checkpoint, which has no parameters, always all. Whatever shards
/// they lie in, they are whole in the file. All bytes are checked on the way; after a kill or an error there is the old file or the new
/// one.
void export_weights(const CheckpointReader& reader, const std::string& path, bool everything);

}  // namespace st
