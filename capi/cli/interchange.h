// Checkpoints to the files of other programs, and from them.
#pragma once

#include <string>
#include <vector>

#include "name_map.h"
#include "torch_import.h"

namespace cli {

/// What `scaletrain checkpoint` was asked for, as text.
struct CheckpointRequest {
  std::string verb, first, second, shards, format, map, step;
  bool json = false, everything = false;
};

/// What read_safetensors() takes, or a file of torch.save, by its first bytes. weights_alone: as read_torch_file().
TorchImport read_weights(const std::string& path, NameMap names, bool weights_alone = false);
/// "a, b"
std::string list_of(const std::vector<std::string>& words);

/// The newest whole one of `first` into the file `second`.
void export_checkpoint(const CheckpointRequest& options);
/// The file or folder `first` as a checkpoint in the run's folder `second`: weights under a trainer's names, and the optimizer's state
/// where the file has it, for st_model_load and st_trainer_resume.
void import_checkpoint(const CheckpointRequest& options);

}  // namespace cli
