// The C functions that a transport plug-in exports, implemented over a C++ class. Header only: a plug-in shares no code with the library.
#pragma once

#include <scaletrain/transport.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <span>
#include <string>

#include "comm/plugin_side/plugin_refusal.h"

namespace st::plugin {

/// `Group` is constructed from an st_plugin_start and throws Refusal if the group cannot be made. It has rank(), size(), write(to, bytes)
/// and read(from, bytes) as in st_transport_callbacks; write and read throw once the other rank is unreachable.
template <class Group>
class PluginFunctions {
 public:
  static st_status open(const st_plugin_start* start, st_plugin_end* end) noexcept {
    try {
      auto end_of_group = std::make_unique<End>(*start);
      end->rank = end_of_group->group.rank();
      end->size = end_of_group->group.size();
      end->callbacks.write = write;
      end->callbacks.read = read;
      end->callbacks.reason = reason;
      end->callbacks.release = release;
      end->user = end_of_group.release();
      return ST_OK;
    } catch (const Refusal& refusal) {
      say(*end, refusal.rank(), refusal.what());
      return refusal.status();
    } catch (const std::bad_alloc&) {
      say(*end, -1, "out of memory for the connections");
      return ST_OUT_OF_MEMORY;
    } catch (const std::exception& error) {
      say(*end, -1, error.what());
      return ST_IO;
    } catch (...) {
      say(*end, -1, "an unknown exception was thrown");
      return ST_INTERNAL;
    }
  }

 private:
  struct End {
    explicit End(const st_plugin_start& start) : group(start) {}
    Group group;
    std::string reason;  // of the last failure
  };

  static st_status write(void* user, int32_t to, const void* data, int64_t bytes, int64_t* taken) noexcept {
    return moved(user, taken, [&](Group& group) {
      return group.write(to, {static_cast<const std::byte*>(data), static_cast<size_t>(bytes)});
    });
  }
  static st_status read(void* user, int32_t from, void* data, int64_t bytes, int64_t* given) noexcept {
    return moved(user, given, [&](Group& group) { return group.read(from, {static_cast<std::byte*>(data), static_cast<size_t>(bytes)}); });
  }
  static const char* reason(void* user) noexcept { return static_cast<End*>(user)->reason.c_str(); }
  static void release(void* user) noexcept {
    try {
      delete static_cast<End*>(user);
    } catch (...) {  // nobody is left to handle what a destructor throws
    }
  }

  template <class Move>
  static st_status moved(void* user, int64_t* bytes, const Move& move) noexcept {
    End& end = *static_cast<End*>(user);
    *bytes = 0;
    const char* why = "an unknown exception was thrown";
    try {
      *bytes = move(end.group);
      return ST_OK;
    } catch (const std::exception& error) {
      keep(end, error.what());
    } catch (...) {
      keep(end, why);
    }
    return ST_RANK_FAILED;
  }

  static void keep(End& end, const char* why) noexcept {
    try {
      end.reason = why;
    } catch (const std::bad_alloc&) {
      end.reason.clear();
    }
  }

  static void say(st_plugin_end& end, int rank, const char* why) noexcept {
    end.failed_rank = rank;
    const size_t bytes = std::min(std::strlen(why), sizeof end.reason - 1);
    std::memcpy(end.reason, why, bytes);
    end.reason[bytes] = '\0';
  }
};

template <class Group>
constexpr st_plugin make_plugin(const char* name, const char* library) {
  return {.struct_size = sizeof(st_plugin),
          .abi = ST_PLUGIN_ABI,
          .name = name,
          .version = ST_PLUGIN_VERSION,
          .library = library,
          .open = PluginFunctions<Group>::open};
}

}  // namespace st::plugin
