// Reads fixtures/ops.safetensors: PyTorch's values for each op (made by fixtures/make_fixtures.py, which describes the contents).
#pragma once

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

/// Ten updates by torch.optim.AdamW on recorded gradients.
struct TorchAdamw {
  std::string name;
  Attrs attrs;
  int64_t steps = 0;
  double factor = 1;
  Tensor first, rates, gradients, parameters, m, v;  // gradients, parameters: [steps, n]
};

class TorchFixture {
 public:
  explicit TorchFixture(const std::string& path);

  std::vector<TorchCase> cases() const;
  std::vector<TorchAdamw> adamw() const;
  std::string torch_version() const;

 private:
  Tensor tensor(const std::string& name) const;

  SafetensorsFile file_;
};

}  // namespace st::conformance
