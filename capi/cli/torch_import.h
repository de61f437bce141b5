// A file of torch.save as tensors under a trainer's names: "NAME", "moment1.NAME", "average.NAME".
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "mapped_file.h"
#include "name_map.h"
#include "options.h"
#include "stored_tensor.h"

namespace cli {

struct TorchImport {
  std::deque<MappedFile> files;
  std::vector<StoredTensor> tensors;   // lie in the files
  int64_t step = 0;                    // updates that the optimizer's state has seen; 0: it does not say
  bool has_state = false;              // of an optimizer
  std::vector<std::string> not_taken;  // keys of the file that have no counterpart here, and weights of a dtype that cannot be read
  Json metadata = Json::object();      // a safetensors file's own, as texts
  bool was_wrapped = false;            // NameMap::unwrap() has taken something off its names
  std::deque<std::string> made;        // bytes of tensors that do not lie in the files as they are
};

/// Takes {"model": .., "optimizer": .., "names": [..], "average": ..}, the same under "model_state_dict", "state_dict" and
/// "optimizer_state_dict", and a state_dict alone. The optimizer's numbers get their names from "names" or from its groups' "param_names".
/// Throws Failure(kRefused) for what else there is, by its name. An optimizer's groups give names alone: rates are the recipe's.
/// weights_alone: the optimizer's state and the average are passed over. `file` stays the caller's, and the tensors lie in it.
TorchImport read_torch_file(const MappedFile& file, const NameMap& names, bool weights_alone = false);

}  // namespace cli
