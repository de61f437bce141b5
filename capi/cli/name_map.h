// Names of another library's weights, by --map: "gpt2" are those of Hugging Face's GPT-2 (scaletrain/gpt2_names.h).
#pragma once

#include <string>
#include <vector>

#include "stored_tensor.h"

namespace cli {

class NameMap {
 public:
  /// "" changes nothing. Throws Failure(kRefused) for a map that there is not.
  explicit NameMap(const std::string& map);
  /// The one by which these tensors are called.
  static NameMap of(const std::vector<StoredTensor>& tensors);

  /// Takes off what PyTorch's wrappers put into names: "_orig_mod." and FSDP's anywhere, "module." where all begin with it, here and from
  /// names that ours() gets later. Returns whether there was any.
  bool unwrap(std::vector<StoredTensor>& weights);

  /// Of a weight in the other library, by ours, and back. Throws Failure(kRefused) for a weight that the map does not know.
  std::string ours(const std::string& theirs) const;
  std::string theirs(const std::string& ours) const;
  /// Takes out what the other library keeps beside the weights: causal masks, and a head that is the embedding. Throws Failure(kRefused)
  /// for a head that is not.
  void drop_copies(std::vector<StoredTensor>& tensors) const;
  bool is_any() const { return !name_.empty(); }

 private:
  std::string unwrapped(std::string name) const;

  std::string name_;
  bool has_module_ = false;
};

}  // namespace cli
