// A library of others that is opened while we run, where it is found; never linked, never required.
#pragma once

#include <filesystem>
#include <span>
#include <string>

namespace cli {

class SharedLibrary {
 public:
  /// The file named by the environment variable and no other; else the first of `names` that loads, from `folder` in the source tree or the
  /// packages of a Python in it, and then from where the system looks. Throws std::runtime_error with the reason. It is never closed:
  /// libraries with threads cannot be.
  SharedLibrary(const char* variable, std::span<const char* const> names, const char* folder = ".venv/lib");

  const std::string& path() const { return path_; }

  /// nullptr when it has no such function. `Function` is a pointer to a function.
  template <class Function>
  Function find(const char* name) const {
    return reinterpret_cast<Function>(symbol(name));
  }
  /// Throws when it has no such function.
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
