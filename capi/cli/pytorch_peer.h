// PyTorch as the opponent of `bench step` and `bench optimizer`: a script of tests/bench in a process of its own that makes one step when
// told to, so that rounds can be interleaved with ours.
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "options.h"
#include "source_tree.h"

namespace cli {

class PytorchPeer {
 public:
  struct Step {
    double check = 0, seconds = 0;  // check: what both sides must agree on, a loss or a sum
  };

  /// Starts the interpreter on `script`, a path in the source tree: the one named by SCALETRAIN_PYTHON, else the .venv of the source tree.
  /// Throws std::runtime_error with the reason when there is none or it has no torch.
  explicit PytorchPeer(const std::string& script = kStepScript);
  ~PytorchPeer();
  PytorchPeer(const PytorchPeer&) = delete;
  PytorchPeer& operator=(const PytorchPeer&) = delete;

  const std::string& version() const { return version_; }

  /// Makes ready what `request` describes to the script. Modes that are ready ("eager", "compiled"); why others are not goes
  /// into `absent`.
  std::vector<std::string> open(const Json& request, std::map<std::string, std::string>& absent);
  /// One step of a mode.
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
