// Shared libraries: others', loaded at run time, and this one.
#pragma once

#include <string>

namespace st::os {

/// Opens the shared library that this code is in once more, so that it stays loaded when its host closes it. Null: it is in none, or the
/// loader does not find it again.
void* open_own_library() noexcept;
/// Gives that back, and 0. Where it was the last reference the calling code is gone: the caller, all the way out of the library, must be
/// code that ends in a jump here, which needs kMakesTailCalls.
int close_own_library(void* library);
/// Whether the file that reads this is compiled so that a call at a function's end becomes a jump.
#ifdef __OPTIMIZE__
constexpr bool kMakesTailCalls = true;
#else
constexpr bool kMakesTailCalls = false;
#endif

/// A shared library of others, opened while we run. It is never closed: what has started threads cannot be.
class LoadedLibrary {
 public:
  /// `name`: a path, or a name that the loader looks for. Runs the library's initialisers. Throws unavailable with the loader's reason.
  explicit LoadedLibrary(const std::string& name);

  const std::string& name() const { return name_; }
  /// Somebody else in this process has opened it before.
  bool was_there() const { return was_there_; }

  /// Null: it has no such function, nor has a library that it needs. `Function` is a pointer to a function.
  template <class Function>
  Function find(const char* name) const {
    return reinterpret_cast<Function>(symbol(name));
  }
  /// Throws unavailable where it has no such function.
  template <class Function>
  Function need(const char* name) const {
    return reinterpret_cast<Function>(needed(name));
  }

 private:
  void* symbol(const char* name) const;
  void* needed(const char* name) const;

  std::string name_;
  void* handle_;
  bool was_there_;
};

}  // namespace st::os
