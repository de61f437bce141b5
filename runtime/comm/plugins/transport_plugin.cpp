#include "comm/plugins/transport_plugin.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "base/float_mode.h"
#include "base/os/files.h"
#include "base/os/loaded_library.h"
#include "base/text.h"
#include "comm/plugins/callback_pipes.h"

namespace st {
namespace {

bool is_plain_name(const std::string& name) {
  return !name.empty() && name.size() <= 32 &&
         std::all_of(name.begin(), name.end(), [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; });
}

/// Where this library's installation has the source of the MPI plug-in; from the build tree: a placeholder.
std::string source_of_mpi() {
  const std::string lib = os::folder_of_this_library();
  std::string source = text(lib.substr(0, lib.rfind('/')), "/share/scaletrain/mpi");
  return os::kind_of(text(source, "/CMakeLists.txt")) == os::PathKind::file ? source : "PREFIX/share/scaletrain/mpi";
}

std::string way_out(const std::string& name) {
  if (name == "gloo") return "; it needs Gloo (Debian: libgloo0 to run it, libgloo-dev to build it)";
  if (name == "mpi")
    return text("; build it against the MPI of this machine: cmake -S ", source_of_mpi(),
                " -B mpi-build && cmake --build mpi-build && cmake --install mpi-build");
  return "; the names are local, gloo and mpi, or NAME of a plug-in libscaletrain_NAME.so";
}

os::LoadedLibrary library_of(const std::string& name) {
  try {
    return os::LoadedLibrary(TransportPlugin::file_of(name));
  } catch (const Error& error) {
    fail(Code::unavailable, text("transport ", name, ": ", error.message(), way_out(name)));
  }
}

int32_t is_cancelled(void* user) {
  const auto& asked = *static_cast<const std::function<bool()>*>(user);
  try {
    return asked && asked() ? 1 : 0;
  } catch (...) {
    return 1;
  }
}

}  // namespace

std::string TransportPlugin::file_of(const std::string& name) {
  const char* asked = std::getenv("SCALETRAIN_PLUGINS");
  const std::string folder = asked != nullptr && *asked != '\0' ? asked : os::folder_of_this_library();
  return text(folder, "/libscaletrain_", name, ".so");
}

TransportPlugin::TransportPlugin(const std::string& name) : name_(name) {
  check(is_plain_name(name), "transport: name must be 1 to 32 of a-z, 0-9 and _, such as gloo or mpi, got \"", name, "\"");
  const os::LoadedLibrary library = library_of(name);
  plugin_ = call_host(library.need<st_plugin_entry>("st_plugin_v1"));
  require(plugin_ != nullptr && plugin_->struct_size >= offsetof(st_plugin, open), Code::unavailable, library.name(),
          ": st_plugin_v1 returned no valid table of functions");
  // The fields before `open` are the same in every version; a shorter table than ours is an older version's.
  require(plugin_->abi == ST_PLUGIN_ABI && plugin_->struct_size >= sizeof(st_plugin), Code::unavailable, library.name(),
          ": it was built for version ", plugin_->version == nullptr ? "?" : plugin_->version, " of ScaleTrain (plug-in interface ",
          plugin_->abi, ", ", plugin_->struct_size, " bytes), this is version ", ST_LIBRARY_VERSION, " (interface ", ST_PLUGIN_ABI, ", ",
          sizeof(st_plugin), " bytes); install the plug-in of this version");
}

std::unique_ptr<Pipes> TransportPlugin::open(const Start& start) const {
  st_plugin_start asked{};
  asked.struct_size = sizeof asked;
  asked.rank = start.rank;
  asked.size = start.size;
  asked.port = start.master_port;
  asked.host = start.master_host.empty() ? nullptr : start.master_host.c_str();
  asked.group = start.group;
  asked.milliseconds = static_cast<int64_t>(std::clamp(start.patience * 1e3, 1.0, 1e12));
  asked.is_cancelled = is_cancelled;
  asked.user = const_cast<std::function<bool()>*>(&start.is_cancelled);  // NOLINT(cppcoreguidelines-pro-type-const-cast)

  st_plugin_end end{};
  end.struct_size = sizeof end;
  end.failed_rank = -1;
  end.callbacks.struct_size = sizeof end.callbacks;
  const st_status status = call_host(plugin_->open, static_cast<const st_plugin_start*>(&asked), &end);
  if (status == ST_OK) return make_callback_pipes(name_, end.rank, end.size, end.callbacks, end.user);
  end.reason[sizeof end.reason - 1] = '\0';
  const bool is_known = status > ST_OK && status <= ST_INTERNAL;
  Error error(is_known ? static_cast<Code>(status) : Code::internal, text("transport ", name_, ": ", end.reason));
  error.place.rank = end.failed_rank;
  throw error;
}

}  // namespace st
