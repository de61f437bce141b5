// Where this program was built: peers and their scripts lie in the source tree. An installed program knows no path of another machine.
#pragma once

#include <filesystem>
#include <optional>

namespace cli {

/// The folder above this program that holds tests/bench/step_pytorch.py.
std::optional<std::filesystem::path> source_tree();

constexpr const char* kStepScript = "tests/bench/step_pytorch.py";

}  // namespace cli
