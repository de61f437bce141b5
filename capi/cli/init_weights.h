// The weights that `scaletrain train --init` names: a file, a folder of Hugging Face's, or checkpoints of ours.
#pragma once

#include <memory>
#include <string>

#include "checkpoint_folder.h"
#include "torch_import.h"

namespace cli {

class InitWeights {
 public:
  /// Opens what is there, and reads which model it is of. Throws Failure.
  explicit InitWeights(const std::string& path);

  /// What ModelChoice takes, and where it stands: a config.json, or the folder of checkpoints; null: nothing says it.
  const Json& model() const { return model_; }
  const std::string& model_source() const { return model_source_; }

  /// Makes all weights of the model these, and says so in one line. Throws Failure(kRefused) that names the tensor which does not fit.
  void read(st_model* model) const;

 private:
  void open_checkpoints();
  void open_file(const std::string& path);
  void set_weights(st_model* model) const;

  std::string path_;
  std::unique_ptr<CheckpointFolder> checkpoints_;  // or
  TorchImport weights_;
  Json model_;
  std::string model_source_;
};

}  // namespace cli
