// PyTorch as the peer of `bench step` and `bench optimizer`: a script of tests/bench in a process of its own that runs one step per
// request, so that rounds can alternate with ours.
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
    double check = 0, seconds = 0;  // check: a loss or a sum on which both sides must agree
  };

  /// Runs `script`, a path in the source tree, with the interpreter that SCALETRAIN_PYTHON names, else that of the source tree's .venv.
  /// Throws std::runtime_error with the reason if there is none or it has no torch.
  explicit PytorchPeer(const std::string& script = kStepScript);
  ~PytorchPeer();
  PytorchPeer(const PytorchPeer&) = delete;
  PytorchPeer& operator=(const PytorchPeer&) = delete;

  const std::string& version() const { return version_; }

  /// Sends `request` to the script. Returns the modes that are ready ("eager", "compiled"); the reasons for missing modes go into `absent`.
  std::vector<std::string> open(const Json& request, std::map<std::string, std::string>& absent);
  /// Runs one step of a mode.
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
