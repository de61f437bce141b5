#include "backend/cuda/vendor_library.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/glob.h"
#include "base/os/files.h"
#include "base/text.h"

namespace st::cuda {
namespace {

constexpr const char* kPath = "SCALETRAIN_CUDA_PATH";

std::vector<std::string> parts_of(std::string_view joined, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : joined) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  std::erase(parts, "");
  return parts;
}

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// The versions of a library (libcuda.so.1) that are in a folder, or in folders below it; by their paths. None where it cannot be read.
std::vector<std::string> versions_in(const std::string& folder, std::string_view stem, bool below = false) {
  std::vector<std::string> files;
  const std::string versions = text(stem, ".*");
  try {
    if (os::kind_of(folder) != os::PathKind::folder) return {};
    files =
        os::files_below(folder, [&](std::string_view name, bool is_folder) { return is_folder ? below : matches_glob(versions, name); });
  } catch (const Error&) {
    return {};
  }
  for (std::string& file : files) file = text(folder, "/", file);
  return files;
}

/// The folders of wheels in the environment of this plug-in and in VIRTUAL_ENV.
std::vector<std::string> wheel_folders() {
  std::vector<std::string> folders;
  const std::string here = os::folder_of_this_library() + "/";
  for (const std::string_view packages : {"/site-packages/", "/dist-packages/"})
    if (const size_t at = here.find(packages); at != std::string::npos) folders.push_back(here.substr(0, at + packages.size()) + "nvidia");
  constexpr int kOldestPython = 8, kNewestPython = 40;  // 3.8 to 3.40
  if (const std::string environment_folder = environment("VIRTUAL_ENV"); !environment_folder.empty())
    for (int minor = kOldestPython; minor <= kNewestPython; ++minor)
      folders.push_back(text(environment_folder, "/lib/python3.", minor, "/site-packages/nvidia"));
  return folders;
}

/// Tries one place after another, and notes why each did not do.
class Search {
 public:
  explicit Search(const VendorLibrary& library) : library_(library), file_(library.file()) {}

  os::LoadedLibrary run() {
    if (auto open = os::LoadedLibrary::if_open(file_)) return *std::move(open);
    note("the libraries of this process", text("no ", file_));
    note_other_major_in_process();
    if (auto found = in_given_folders()) return *std::move(found);
    if (auto found = tried(file_)) return *std::move(found);
    if (library_.in_wheels)
      if (auto found = in_wheels()) return *std::move(found);
    fail(Code::unavailable,
         text(library_.title, " is missing; tried: ", tries_, "; ", library_.remedy, ", or set ", kPath, " to the folder of ", file_));
  }

 private:
  void note(std::string_view place, std::string_view why) { tries_ += text(tries_.empty() ? "" : ", ", place, " (", why, ")"); }

  std::optional<os::LoadedLibrary> tried(const std::string& path) {
    try {
      return os::LoadedLibrary(path);
    } catch (const Error& error) {
      std::string_view why = error.message();
      if (why.starts_with(path + ": ")) why.remove_prefix(path.size() + 2);
      note(path, why);
      return std::nullopt;
    }
  }

  void note_other_major_in_process() {
    constexpr int kAround = 3;
    for (int major = std::max(library_.major - kAround, 1); major <= library_.major + kAround; ++major)
      if (major != library_.major && os::LoadedLibrary::if_open(text(library_.stem, ".", major)))
        note(text(library_.stem, ".", major), "open in this process, but of another major version");
  }

  std::optional<os::LoadedLibrary> in_given_folders() {
    const std::vector<std::string> folders = parts_of(environment(kPath), ':');
    if (folders.empty()) note(kPath, "not set");
    for (const std::string& folder : folders) {
      bool is_there = false;
      for (const char* below : {"", "/lib64", "/lib"}) {
        const std::vector<std::string> all = versions_in(folder + below, library_.stem);
        is_there = is_there || !all.empty();
        if (auto found = first_of(all)) return found;
      }
      if (!is_there) note(folder, text("no ", file_, ", nor in its lib64 and lib"));
    }
    return std::nullopt;
  }

  std::optional<os::LoadedLibrary> in_wheels() {
    bool is_there = false;
    for (const std::string& folder : wheel_folders()) {
      const std::vector<std::string> all = versions_in(folder, library_.stem, true);
      is_there = is_there || !all.empty();
      if (auto found = first_of(all)) return found;
    }
    const std::string active = environment("VIRTUAL_ENV");
    if (!is_there)
      note("nvidia/*/lib of Python's packages", text("no ", file_, " next to ", os::folder_of_this_library(),
                                                     " or in VIRTUAL_ENV, which is ", active.empty() ? "not set" : active));
    return std::nullopt;
  }

  /// Opens the first file of the wanted version; notes those of another.
  std::optional<os::LoadedLibrary> first_of(const std::vector<std::string>& paths) {
    for (const std::string& path : paths) {
      const std::string name = path.substr(path.rfind('/') + 1);
      if (name == file_) {
        if (auto found = tried(path)) return found;
      } else if (name.find('.', library_.stem.size() + 1) == std::string::npos) {  // not libcuda.so.580.65.06
        note(path, text("another major version, ", library_.major, " is needed"));
      }
    }
    return std::nullopt;
  }

  const VendorLibrary& library_;
  const std::string file_;
  std::string tries_;
};

}  // namespace

std::string VendorLibrary::file() const { return text(stem, ".", major); }

os::LoadedLibrary open_vendor_library(const VendorLibrary& library) { return Search(library).run(); }

}  // namespace st::cuda
