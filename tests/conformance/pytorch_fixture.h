// Reads fixtures/ops.safetensors and optimizers.safetensors: PyTorch's values (made by the scripts beside them, which describe the
// contents).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "checkpoint/safetensors.h"
#include "conformance.h"

namespace st::conformance {

/// A case and what PyTorch gave for it.
struct TorchCase {
  OpCase op_case;                             // `seeded` and `parameters` as in the file
  double tolerance = 0;                       // 0: the usual one; else relative to the largest, with its reason in make_fixtures.py
  std::vector<Tensor> out, seeds, gradients;  // seeds by `seeded`, gradients by `parameters`
};

/// Updates by an optimizer of torch.optim on recorded gradients (fixtures/make_optimizer_fixtures.py).
struct TorchOptimizer {
  std::string name;
  Op op{};
  Attrs attrs;
  Shape shape;
  double lr = 0, tolerance = 0;     // tolerance: of the largest displacement
  std::map<int64_t, Tensor> after;  // the parameter after so many steps
};

/// What all of them are given.
struct TorchGradients {
  double factor = 1;               // of each gradient
  Tensor first, rates, gradients;  // the parameter; [steps]; [steps, rows, columns]
};

class TorchFixture {
 public:
  explicit TorchFixture(const std::string& path);

  std::vector<TorchCase> cases() const;
  std::vector<TorchOptimizer> optimizers() const;
  TorchGradients gradients() const;
  std::string torch_version() const;

 private:
  Tensor tensor(const std::string& name) const;

  SafetensorsFile file_;
};

}  // namespace st::conformance
