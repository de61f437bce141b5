// Writes a tree as a pickle of protocol 2, as torch.save writes data.pkl. torch.load reads it with weights_only=True.
#pragma once

#include <string>

#include "torch_value.h"

namespace cli {

/// Takes dicts, lists, tuples, texts, numbers, None and tensors. A TorchGlobal, or a storage outside a tensor, is a bug in the caller.
std::string pickle(const TorchValue& value);

/// torch's storage name for a dtype, such as "FloatStorage", and the dtype for a name; nullptr and 0 if there is none.
const char* storage_name(st_dtype dtype);
st_dtype storage_dtype(std::string_view name);

}  // namespace cli
