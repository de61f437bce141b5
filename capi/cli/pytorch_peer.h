// PyTorch as the opponent of `bench step`: tests/bench/step_pytorch.py in a process of its own that makes one step when told to, so that
// rounds can be interleaved with ours.
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "options.h"

namespace cli {

class PytorchPeer {
 public:
  struct Step {
    double loss = 0, seconds = 0;
  };

  /// Starts the interpreter: the one named by SCALETRAIN_PYTHON, else the .venv of the source tree. Throws std::runtime_error with the
  /// reason when there is none or it has no torch.
  PytorchPeer();
  ~PytorchPeer();
  PytorchPeer(const PytorchPeer&) = delete;
  PytorchPeer& operator=(const PytorchPeer&) = delete;

  const std::string& version() const { return version_; }

  /// Builds the model of `request` (shape, weights, tokens, threads). Modes that are ready ("eager", "compiled"); why others are not goes
  /// into `absent`.
  std::vector<std::string> open(const Json& request, std::map<std::string, std::string>& absent);
  /// One training step of a mode on the next batch.
  Step step(const std::string& mode);

 private:
  Json ask_child(const Json& request);
  void end_child();

  pid_t child_ = -1;
  std::FILE* to_ = nullptr;
  std::FILE* from_ = nullptr;
  std::string version_;
};

}  // namespace cli
