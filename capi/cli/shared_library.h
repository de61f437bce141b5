// Another project's library, loaded at run time if it is found; never linked, never required.
#pragma once

#include <filesystem>
#include <span>
#include <string>

namespace cli {

class SharedLibrary {
 public:
  /// Loads the file named by the environment variable and no other. Without the variable, loads the first of `names` found in `folder` of
  /// the source tree or in the packages of a Python there, then on the system's search path. Throws std::runtime_error with the reason.
  /// Never closed: libraries with threads cannot be unloaded.
  SharedLibrary(const char* variable, std::span<const char* const> names, const char* folder = ".venv/lib");

  const std::string& path() const { return path_; }

  /// nullptr if there is no such function. `Function` is a pointer to a function.
  template <class Function>
  Function find(const char* name) const {
    return reinterpret_cast<Function>(symbol(name));
  }
  /// Throws if there is no such function.
  template <class Function>
  Function need(const char* name) const {
    return reinterpret_cast<Function>(needed(name));
  }

 private:
  bool open(const std::filesystem::path& file);
  void* symbol(const char* name) const;
  void* needed(const char* name) const;

  std::string path_, reason_;
  void* handle_ = nullptr;
};

}  // namespace cli
