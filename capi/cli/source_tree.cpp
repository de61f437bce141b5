#include "source_tree.h"

namespace cli {

std::optional<std::filesystem::path> source_tree() {
  std::error_code none;
  for (auto folder = std::filesystem::read_symlink("/proc/self/exe", none); folder.has_relative_path();) {
    folder = folder.parent_path();
    if (std::filesystem::exists(folder / kStepScript, none)) return folder;
  }
  return std::nullopt;
}

}  // namespace cli
