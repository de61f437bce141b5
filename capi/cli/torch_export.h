// A trainer's checkpoint as a torch.save file: the weights, a state_dict() for torch.optim's load_state_dict(), and the names of the
// optimizer's parameters in order.
//
//   {"model": {name: tensor}, "optimizer": {"state": {i: {..}}, "param_groups": [..]}, "names": [name of i], "class": "torch.optim.AdamW",
//    "average": {name: tensor}}         the last key only if the recipe keeps a moving average
#pragma once

#include <string>
#include <vector>

#include "name_map.h"
#include "options.h"
#include "stored_tensor.h"

namespace cli {

/// `manifest`: from st_checkpoint_inspect; `tensors`: all that it names. Throws Failure(kRefused) for an optimizer that PyTorch does not
/// have.
void write_torch_file(const std::string& path, const Json& manifest, const std::vector<StoredTensor>& tensors, const NameMap& names);

}  // namespace cli
