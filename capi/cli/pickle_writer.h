// A tree as a pickle of protocol 2, as torch.save writes data.pkl: torch.load takes it with weights_only=True.
#pragma once

#include <string>

#include "torch_value.h"

namespace cli {

/// Dicts, lists, tuples, texts, numbers, None and tensors; a TorchGlobal or a storage alone is a defect of the caller.
std::string pickle(const TorchValue& value);

/// torch's name of a storage of this dtype, "FloatStorage", and the dtype of such a name; nullptr and 0: there is none.
const char* storage_name(st_dtype dtype);
st_dtype storage_dtype(std::string_view name);

}  // namespace cli
