// A recipe's optimizer and parameter groups as torch.optim's param_groups.
#pragma once

#include <string>
#include <vector>

#include "options.h"
#include "torch_value.h"

namespace cli {

class TorchGroups {
 public:
  /// `manifest`: of a trainer's checkpoint. Throws Failure(kRefused) for an optimizer that torch.optim does not have, and for two in one
  /// run.
  explicit TorchGroups(const Json& manifest);

  const std::string& optimizer() const { return optimizer_; }  // the recipe's name
  std::string torch_class() const;                             // "torch.optim.AdamW"
  /// The trained weights, group by group: PyTorch's parameter i is the i-th. Call before write().
  std::vector<std::string> order(const std::vector<std::string>& weights);
  /// One group for each group of the recipe that has weights, with its rates multiplied out; lr is that of the next step.
  const TorchValue* write(TorchValues& values) const;

 private:
  struct Group {
    std::string pattern;
    double lr_scale = 1, decay_scale = 1;
    bool is_frozen = false;
    int64_t weights = 0;
  };

  double real(const char* key) const;
  bool flag(const char* key) const;
  void write_keys(TorchValues& values, TorchValue* to, const Group& group) const;

  Recipe recipe_;
  double lr_;
  std::string optimizer_;
  std::vector<Group> groups_;  // the last one holds the weights that match no pattern
};

}  // namespace cli
