// Writes a checkpoint as one safetensors file, for other tools.
#pragma once

#include <string>

#include "checkpoint/checkpoint_reader.h"

namespace st {

/// Writes the parameters, or all tensors if `everything` is set or the checkpoint is a host's, which has no parameters. Each tensor is
/// whole in the file, however it was sharded. All bytes are verified; after a kill or an error there is either the old file or the new one.
void export_weights(const CheckpointReader& reader, const std::string& path, bool everything);

}  // namespace st
