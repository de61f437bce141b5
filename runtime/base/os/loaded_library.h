// Shared libraries: others', loaded at run time, and this one.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace st::os {

/// Takes one more reference to the shared library of this code, so that it stays loaded when the host closes it. Null: the code is in no
/// shared library, or the loader does not find it.
void* open_own_library() noexcept;
/// Drops that reference and returns 0. If it was the last, the library's code is gone: every caller up to the host must end in a tail call
/// here, which needs kMakesTailCalls.
int close_own_library(void* library);
/// Whether the including file is compiled so that a call at a function's end becomes a jump.
#ifdef __OPTIMIZE__
constexpr bool kMakesTailCalls = true;
#else
constexpr bool kMakesTailCalls = false;
#endif

/// The folder of the shared library or program that contains this code, without a trailing slash: its plug-ins are installed there. "." if
/// it is unknown.
std::string folder_of_this_library();

/// A third-party shared library, opened at run time. It is never closed, because it may have started threads.
class LoadedLibrary {
 public:
  /// `name`: a path, or a name for the loader to search. Runs the library's initialisers. Throws unavailable with the loader's reason.
  explicit LoadedLibrary(const std::string& name);
  /// The library of this path or of this name of its own (soname), if the process has it open; loads none.
  static std::optional<LoadedLibrary> if_open(const std::string& name);

  const std::string& name() const { return name_; }
  /// Whether this process had it open already.
  bool was_open() const { return was_open_; }

  /// Null: neither it nor a library that it depends on has the function. `Function` is a pointer to a function.
  template <class Function>
  Function find(const char* name) const {
    return reinterpret_cast<Function>(symbol(name));
  }
  /// Throws unavailable when the function is missing.
  template <class Function>
  Function need(const char* name) const {
    return reinterpret_cast<Function>(needed(name));
  }
  /// Sets `function`, a row of a table. Throws unavailable when it is missing, with what the library is not ("NCCL that this plug-in
  /// knows") and the way out.
  template <class Function>
  void fill(Function& function, const char* name, std::string_view expected, std::string_view remedy) const {
    function = find<Function>(name);
    if (function == nullptr) refuse(name, expected, remedy);
  }

 private:
  LoadedLibrary(const std::string& name, void* handle) : name_(name), handle_(handle), was_open_(true) {}
  void* symbol(const char* name) const;
  void* needed(const char* name) const;
  [[noreturn]] void refuse(const char* missing, std::string_view expected, std::string_view remedy) const;

  std::string name_;
  void* handle_;
  bool was_open_;
};

}  // namespace st::os
