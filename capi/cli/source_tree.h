// The source tree that this program was built in; the peers and their scripts are there. An installed program holds no path of the build
// machine.
#pragma once

#include <filesystem>
#include <optional>

namespace cli {

/// The parent folder of this program that holds tests/bench/step_pytorch.py.
std::optional<std::filesystem::path> source_tree();

constexpr const char* kStepScript = "tests/bench/step_pytorch.py";

}  // namespace cli
