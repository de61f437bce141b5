#include "base/os/loaded_library.h"

#include <dlfcn.h>

#include "base/error.h"
#include "base/float_mode.h"

// A statically linked program, libc included, has no loader: these symbols are then null, and the linker does not warn about them.
#pragma weak dlopen
#pragma weak dlsym
#pragma weak dlerror
#pragma weak dladdr
#pragma weak dlclose

namespace st::os {
namespace {

/// glibc's message starts with the library's name, which the caller adds itself.
std::string reason_of_loader(const std::string& name) {
  const char* said = dlerror();
  const std::string reason = said == nullptr ? "the loader gave no reason" : said;
  return reason.starts_with(name + ": ") ? reason.substr(name.size() + 2) : reason;
}

}  // namespace

std::string folder_of_this_library() {
  static const char kHere = 0;
  Dl_info found{};
  if (&dladdr == nullptr || dladdr(&kHere, &found) == 0 || found.dli_fname == nullptr) return ".";
  const std::string file = found.dli_fname;
  const size_t end = file.rfind('/');
  return end == std::string::npos ? "." : file.substr(0, end);
}

LoadedLibrary::LoadedLibrary(const std::string& name) : name_(name) {
  require(&dlopen != nullptr && &dlsym != nullptr && &dlerror != nullptr, Code::unavailable, name,
          ": this program is linked statically and cannot load libraries");
  const HostsFloatMode mode;  // threads that it starts keep this thread's mode
  handle_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  was_open_ = handle_ != nullptr;
  if (!was_open_) handle_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr) fail(Code::unavailable, text(name, ": ", reason_of_loader(name)));
}

std::optional<LoadedLibrary> LoadedLibrary::if_open(const std::string& name) {
  if (&dlopen == nullptr) return std::nullopt;
  void* const handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (handle == nullptr) return std::nullopt;
  return LoadedLibrary(name, handle);
}

void* open_own_library() noexcept {
  if (&dladdr == nullptr || &dlopen == nullptr) return nullptr;
  Dl_info own{};
  if (dladdr(reinterpret_cast<const void*>(&open_own_library), &own) == 0) return nullptr;
  return dlopen(own.dli_fname, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
}

int close_own_library(void* library) { return dlclose(library); }

void* LoadedLibrary::symbol(const char* name) const { return dlsym(handle_, name); }

void* LoadedLibrary::needed(const char* name) const {
  if (void* found = symbol(name)) return found;
  fail(Code::unavailable, text(name_, " has no function ", name));
}

void LoadedLibrary::refuse(const char* missing, std::string_view expected, std::string_view remedy) const {
  fail(Code::unavailable, text(name_, " has no function ", missing, ", so it is no ", expected, "; ", remedy));
}

}  // namespace st::os
