// Weight names of another library, chosen by --map: "gpt2" has those of Hugging Face's GPT-2 (scaletrain/gpt2_names.h). Those of
// Llama, whose weights are also laid out differently, are in llama_weights.h.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "stored_tensor.h"

namespace cli {

/// `name` after a rename whose patterns may have one *; "": it does not fit `from`.
std::string by_rename(std::string_view name, std::string_view from, std::string_view to);

class NameMap {
 public:
  /// "" changes nothing. Throws Failure(kRefused) for an unknown map.
  explicit NameMap(const std::string& map);
  /// The map that fits the names of these tensors.
  static NameMap of(const std::vector<StoredTensor>& tensors);

  /// Strips what PyTorch's wrappers add to names: "_orig_mod." and FSDP's prefix anywhere, "module." if all names begin with it. Then
  /// strips any other prefix that all names begin with ("model.": a LightningModule's attribute) if all are GPT-2's or our gpt's without
  /// it. Later calls of ours() strip the same. Returns what was stripped, as "_orig_mod., model."; "": nothing.
  std::string unwrap(std::vector<StoredTensor>& weights);

  /// Our name for the other library's name, and back. Throws Failure(kRefused) for a weight that the map does not know.
  std::string ours(const std::string& theirs) const;
  std::string theirs(const std::string& ours) const;
  /// Removes what the other library stores in addition to the weights: causal masks, and a head that is a copy of the embedding. Throws
  /// Failure(kRefused) for a different head.
  void drop_copies(std::vector<StoredTensor>& tensors) const;
  bool is_any() const { return !name_.empty(); }

 private:
  std::string unwrapped(std::string name) const;
  bool knows(std::string_view name) const;
  std::string shared_prefix(const std::vector<StoredTensor>& weights) const;

  std::string name_;
  std::string prefix_;  // that unwrap() strips
};

}  // namespace cli
