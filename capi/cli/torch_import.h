// A torch.save file as tensors under a trainer's names: "NAME", "moment1.NAME", "average.NAME".
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
  std::vector<StoredTensor> tensors;   // point into the files
  int64_t step = 0;                    // updates that the optimizer's state has seen; 0: unknown
  bool has_state = false;              // the file has an optimizer's state
  std::vector<std::string> not_taken;  // keys of the file without a counterpart here, and weights of an unsupported dtype
  Json metadata = Json::object();      // of a safetensors file, as texts
  std::string stripped;                // prefixes that NameMap::unwrap() took from its names
  std::deque<std::string> made;        // bytes of tensors that had to be converted
};

/// Takes {"model": .., "optimizer": .., "names": [..], "average": ..}, the same under "model_state_dict", "state_dict" and
/// "optimizer_state_dict", or a state_dict alone. "names" or the groups' "param_names" map the optimizer's numbers to names; the groups'
/// rates are not read, since the recipe has its own. Throws Failure(kRefused) that names any other content.
/// weights_alone: skips the optimizer's state and the average. The result borrows `file`.
TorchImport read_torch_file(const MappedFile& file, const NameMap& names, bool weights_alone = false);

}  // namespace cli
