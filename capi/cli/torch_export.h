// A trainer's checkpoint as a file of torch.save: weights, an optimizer's state_dict() that torch.optim's load_state_dict() takes, and the
// names of its parameters in their order.
//
//   {"model": {name: tensor}, "optimizer": {"state": {i: {..}}, "param_groups": [..]}, "names": [name of i], "class": "torch.optim.AdamW",
//    "average": {name: tensor}}         the last one where the recipe keeps a moving average
#pragma once

#include <string>
#include <vector>

#include "name_map.h"
#include "options.h"
#include "stored_tensor.h"

namespace cli {

/// `manifest`: st_checkpoint_inspect's; `tensors`: all that it names. Throws Failure(kRefused) for an optimizer that PyTorch has none of.
void write_torch_file(const std::string& path, const Json& manifest, const std::vector<StoredTensor>& tensors, const NameMap& names);

}  // namespace cli
