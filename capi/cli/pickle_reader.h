// Reads the data.pkl of a PyTorch file. A pickle is a program: only the opcodes that tensors, dicts, lists, texts and numbers need are
// executed; any other class or function is refused by its name.
#pragma once

#include <string_view>

#include "torch_value.h"

namespace cli {

/// Throws Failure(kRefused); the message starts with `file`. Uses memory of a small multiple of the text's size: each value is stored once,
/// however often it is referenced. So the result may be a graph, even a cyclic one: bound every walk.
const TorchValue& unpickle(std::string_view text, std::string_view file, TorchValues& values);

}  // namespace cli
