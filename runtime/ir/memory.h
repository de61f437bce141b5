// The place of every value and slot of a program in memory: memory_plan decides it, the plan prints it, the executor allocates it.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/memory_account.h"

namespace st {

/// One arena per role; the names are those of `scaletrain plan --json`.
enum class Arena : int32_t { parameters, gradients, optimizer, activations, stash, buckets, packed, workspace, control, host };
constexpr int32_t kArenas = 10;
std::string_view name_of(Arena arena);

/// The memory account of an arena that has its own memory (all but host).
constexpr MemoryRole role_of(Arena arena) { return static_cast<MemoryRole>(arena); }
static_assert(role_of(Arena::parameters) == MemoryRole::parameters && role_of(Arena::control) == MemoryRole::control);

/// `host` has no offset: its memory is bound for each micro-batch (inputs) or each run (borrowed slots).
struct Place {
  Arena arena = Arena::host;
  int64_t offset = 0;
  bool operator==(const Place&) const = default;
};

constexpr int64_t kAlignment = 64;
constexpr int64_t align_up(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// The buffers of the stash for what one chunk of the model keeps, or for one gradient that is sent to another stage: of equal size, as
/// many as there are micro-batches in flight, or messages under way. Micro-batches begin and end by number, so they take the buffers in
/// turn.
struct StashBuffers {
  int64_t begin = 0, bytes = 0;  // of the first one
  int32_t count = 1;
  std::vector<int64_t> begins = {};  // by micro-batch: in memory that chunks share (stash_pool); empty: one after another from `begin` on

  int64_t begin_of(int64_t k) const { return begins.empty() ? begin + k % count * bytes : begins[static_cast<size_t>(k)]; }
};

/// Bytes of an arena in the host's memory, and their copy in the device's.
struct StagedBytes {
  Place home, staged;
  int64_t bytes = 0;
  bool is_written = false;  // by a node of the window: they are copied back
};

/// Nodes [begin, end) of a section, which compute with the same copies (plan/state_windows.h).
struct StateWindow {
  int32_t section = 0, begin = 0, end = 0;
  std::vector<StagedBytes> copies = {};
};

struct MemoryLayout {
  std::array<int64_t, kArenas> bytes{};                 // size of each arena; host: 0
  std::vector<Place> slots;                             // by slot
  std::vector<std::vector<std::vector<Place>>> values;  // by section, node, output
  std::array<bool, kArenas> in_file{};                  // is in a file (recipe key offload_folder), not in memory
  std::array<bool, kArenas> on_host{};                  // is in the host's memory, not in the device's (recipe key offload)
  int64_t no_reuse_bytes = 0;                           // of activations, stash and workspace if no two values shared memory
  std::vector<StashBuffers> stash = {};                 // by chunk, then of sent gradients; places in the stash are those of micro-batch 0
  std::vector<StateWindow> windows = {};                // of sections, in their order; of a plan with arenas on the host

  /// Where a node computes with the bytes of a place: of an arena on the host, with a copy of its window.
  Place where_computed(int32_t section, int32_t node, const Place& place) const {
    if (!on_host[static_cast<size_t>(place.arena)]) return place;
    for (const StateWindow& window : windows) {
      if (window.section != section || node < window.begin || node >= window.end) continue;
      for (const StagedBytes& of : window.copies)
        if (of.home.arena == place.arena && place.offset >= of.home.offset && place.offset < of.home.offset + of.bytes)
          return {of.staged.arena, of.staged.offset + place.offset - of.home.offset};
    }
    return place;
  }

  /// The buffers that a place in the stash is in; null: it is not in the stash.
  const StashBuffers* buffers_of(const Place& place) const {
    for (const StashBuffers& buffers : stash)
      if (place.arena == Arena::stash && place.offset >= buffers.begin && place.offset < buffers.begin + buffers.bytes) return &buffers;
    return nullptr;
  }
  Place of_micro_batch(const Place& place, int64_t k) const {
    const StashBuffers* const buffers = buffers_of(place);
    return buffers == nullptr ? place : Place{place.arena, place.offset - buffers->begin + buffers->begin_of(k)};
  }

  int64_t total() const {
    int64_t sum = 0;
    for (const int64_t b : bytes) sum += b;
    return sum;
  }
  int64_t file_bytes() const { return bytes_in(in_file); }
  int64_t host_bytes() const { return bytes_in(on_host); }
  /// Bytes in the memory that kernels use.
  int64_t device_bytes() const { return total() - file_bytes() - host_bytes(); }
  int64_t on_device(Arena arena) const {
    const auto a = static_cast<size_t>(arena);
    return in_file[a] || on_host[a] ? 0 : bytes[a];
  }
  /// Bytes of its memory that the plan needs in addition to the parameters.
  int64_t beside_parameters() const { return device_bytes() - on_device(Arena::parameters); }
  int64_t of(Arena arena) const { return bytes[static_cast<size_t>(arena)]; }

 private:
  int64_t bytes_in(const std::array<bool, kArenas>& chosen) const {
    int64_t sum = 0;
    for (size_t a = 0; a < bytes.size(); ++a) sum += chosen[a] ? bytes[a] : 0;
    return sum;
  }
};

}  // namespace st
