// Checkpoints to the files of other programs, and from them.
#pragma once

#include <string>

namespace cli {

/// What `scaletrain checkpoint` was asked for, as text.
struct CheckpointRequest {
  std::string verb, first, second, shards, format, map, step;
  bool json = false, everything = false;
};

/// The newest whole one of `first` into the file `second`.
void export_checkpoint(const CheckpointRequest& options);
/// The file or folder `first` as a checkpoint in the run's folder `second`: weights under a trainer's names, and the optimizer's state
/// where the file has it, for st_model_load and st_trainer_resume.
void import_checkpoint(const CheckpointRequest& options);

}  // namespace cli
