// Reads fixtures/ops.safetensors and optimizers.safetensors: PyTorch's values. The scripts in that folder make them and describe the
// contents.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "checkpoint/safetensors.h"
#include "conformance.h"

namespace st::conformance {

/// A case and PyTorch's results for it.
struct TorchCase {
  OpCase op_case;                             // `seeded` and `parameters` as in the file
  double tolerance = 0;                       // 0: the default; else relative to the largest element, with a reason in make_fixtures.py
  std::vector<Tensor> out, seeds, gradients;  // seeds by `seeded`, gradients by `parameters`
};

/// Updates of a torch.optim optimizer on recorded gradients (fixtures/make_optimizer_fixtures.py).
struct TorchOptimizer {
  std::string name;
  Op op{};
  Attrs attrs;
  Shape shape;
  double lr = 0, tolerance = 0;     // tolerance: of the largest displacement
  std::map<int64_t, Tensor> after;  // the parameter after this number of steps
};

/// The inputs common to all optimizers.
struct TorchGradients {
  double factor = 1;               // of each gradient
  Tensor first, rates, gradients;  // the parameter; [steps]; [steps, rows, columns]
};

class TorchFixture {
 public:
  /// `name`: in the folder ST_FIXTURES, if the environment has it, else in this folder's fixtures.
  explicit TorchFixture(const std::string& name);

  std::vector<TorchCase> cases() const;
  std::vector<TorchOptimizer> optimizers() const;
  TorchGradients gradients() const;
  std::string torch_version() const;

 private:
  Tensor tensor(const std::string& name) const;

  SafetensorsFile file_;
};

}  // namespace st::conformance
