// Reads the data.pkl of a PyTorch file, and nothing that is not tensors, dicts, lists, texts and numbers: a pickle is a program, and of
// this one only the opcodes that such values need are run. What names any class or function beyond them is refused by its name.
#pragma once

#include <string_view>

#include "torch_value.h"

namespace cli {

/// Throws Failure(kRefused) with `file` in front of what is wrong. Memory is within a small multiple of the text's size: each value is kept
/// once, however often it is named, so what is returned may be a graph, with circles too; do not walk it without a bound.
const TorchValue& unpickle(std::string_view text, std::string_view file, TorchValues& values);

}  // namespace cli
