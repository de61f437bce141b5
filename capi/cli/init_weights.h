// The weights that `scaletrain train --init` names: a file, a Hugging Face folder, or checkpoints of this library.
#pragma once

#include <memory>
#include <string>

#include "checkpoint_folder.h"
#include "torch_import.h"

namespace cli {

class InitWeights {
 public:
  /// Opens the path and finds out the model. Throws Failure.
  explicit InitWeights(const std::string& path);

  /// The model in ModelChoice's form, and its source: a config.json, or the folder of checkpoints. Null if no source names the model.
  const Json& model() const { return model_; }
  const std::string& model_source() const { return model_source_; }

  /// Sets all weights of the model and reports it in one line. Throws Failure(kRefused) that names the tensor that does not fit.
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
