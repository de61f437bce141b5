// Weight names of another library, chosen by --map: "gpt2" has those of Hugging Face's GPT-2 (scaletrain/gpt2_names.h).
#pragma once

#include <string>
#include <vector>

#include "stored_tensor.h"

namespace cli {

class NameMap {
 public:
  /// "" changes nothing. Throws Failure(kRefused) for an unknown map.
  explicit NameMap(const std::string& map);
  /// The map that fits the names of these tensors.
  static NameMap of(const std::vector<StoredTensor>& tensors);

  /// Strips what PyTorch's wrappers add to names: "_orig_mod." and FSDP's prefix anywhere, "module." if all names begin with it. Later
  /// calls of ours() strip the same. Returns whether anything was stripped.
  bool unwrap(std::vector<StoredTensor>& weights);

  /// Our name for the other library's name, and back. Throws Failure(kRefused) for a weight that the map does not know.
  std::string ours(const std::string& theirs) const;
  std::string theirs(const std::string& ours) const;
  /// Removes what the other library stores in addition to the weights: causal masks, and a head that is a copy of the embedding. Throws
  /// Failure(kRefused) for a different head.
  void drop_copies(std::vector<StoredTensor>& tensors) const;
  bool is_any() const { return !name_.empty(); }

 private:
  std::string unwrapped(std::string name) const;

  std::string name_;
  bool has_module_ = false;
};

}  // namespace cli
