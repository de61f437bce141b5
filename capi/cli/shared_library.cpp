#include "shared_library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <stdexcept>
#include <vector>

#include "source_tree.h"

namespace cli {
namespace {

namespace fs = std::filesystem;

constexpr int kMostNeighbours = 64;

/// The folders where wheels put their libraries: lib itself (mkl, onednn), or a package's own lib.
std::vector<fs::path> library_folders(const char* folder) {
  std::vector<fs::path> folders;
  const auto tree = source_tree();
  if (!tree) return folders;
  const fs::path lib = *tree / folder;
  folders.push_back(lib);
  std::error_code none;
  for (const auto& python : fs::directory_iterator(lib, none)) {
    if (!python.path().filename().string().starts_with("python")) continue;
    for (const auto& package : fs::directory_iterator(python.path() / "site-packages", none))
      if (fs::is_directory(package.path() / "lib", none)) folders.push_back(package.path() / "lib");
  }
  return folders;
}

/// A wheel's library does not record that the libraries it needs are in its own folder. The loader names the first missing one; load that,
/// then try again.
void* load_with_neighbours(const fs::path& file, std::string& reason, int most) {
  std::string last;
  for (int neighbour = 0; neighbour < most; ++neighbour) {
    if (void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
    reason = dlerror();
    const std::string missing = reason.substr(0, reason.find(':'));
    std::error_code none;
    if (missing == last || !file.has_parent_path() || !fs::exists(file.parent_path() / missing, none)) return nullptr;
    if (file.parent_path() / missing == file || load_with_neighbours(file.parent_path() / missing, reason, most - 1) == nullptr)
      return nullptr;
    last = missing;
  }
  return nullptr;
}

}  // namespace

SharedLibrary::SharedLibrary(const char* variable, std::span<const char* const> names, const char* folder) {
  const char* named = std::getenv(variable);
  if (named != nullptr && *named != '\0') {
    if (!open(named)) throw std::runtime_error(std::string(variable) + ": " + reason_);
    return;
  }
  std::error_code none;
  std::string broken;  // found, but not loadable
  for (const fs::path& place : library_folders(folder))
    for (const char* name : names) {
      if (!fs::exists(place / name, none)) continue;
      if (open(place / name)) return;
      broken += reason_ + "; ";
    }
  std::string all;
  for (const char* name : names) {
    if (open(name)) return;
    all += (all.empty() ? "" : ", ") + std::string(name);
  }
  throw std::runtime_error(broken + all + " not found; tests/setup --peers installs it, or name a file in " + variable);
}

bool SharedLibrary::open(const fs::path& file) {
  path_ = file;
  handle_ = load_with_neighbours(file, reason_, kMostNeighbours);
  return handle_ != nullptr;
}

void* SharedLibrary::symbol(const char* name) const { return dlsym(handle_, name); }

void* SharedLibrary::needed(const char* name) const {
  if (void* found = symbol(name)) return found;
  throw std::runtime_error(path_ + " has no " + name);
}

}  // namespace cli
