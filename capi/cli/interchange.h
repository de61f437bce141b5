// Export of checkpoints to other programs' files, and import from them.
#pragma once

#include <string>
#include <vector>

#include "name_map.h"
#include "torch_import.h"

namespace cli {

/// The arguments of `scaletrain checkpoint`, as text.
struct CheckpointRequest {
  std::string verb, first, second, shards, format, map, step;
  bool json = false, everything = false;
};

/// Reads a safetensors file or folder, or a torch.save file (recognised by its first bytes). weights_alone: see read_torch_file().
TorchImport read_weights(const std::string& path, NameMap names, bool weights_alone = false);
/// "a, b"
std::string list_of(const std::vector<std::string>& words);

/// Exports the newest whole checkpoint of `first` to the file `second`.
void export_checkpoint(const CheckpointRequest& options);
/// Adds the file or folder `first` to the run's folder `second` as a checkpoint for st_model_load and st_trainer_resume: weights under a
/// trainer's names, and the optimizer's state if the file has it.
void import_checkpoint(const CheckpointRequest& options);

}  // namespace cli
