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

struct MemoryLayout {
  std::array<int64_t, kArenas> bytes{};                 // size of each arena; host: 0
  std::vector<Place> slots;                             // by slot
  std::vector<std::vector<std::vector<Place>>> values;  // by section, node, output
  std::array<bool, kArenas> in_file{};                  // is in a file (recipe key offload_folder), not in memory
  int64_t no_reuse_bytes = 0;                           // of activations, stash and workspace if no two values shared memory
  std::vector<StashBuffers> stash = {};                 // by chunk, then of sent gradients; places in the stash are those of micro-batch 0

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
  int64_t file_bytes() const {
    int64_t sum = 0;
    for (int32_t a = 0; a < kArenas; ++a) sum += in_file[static_cast<size_t>(a)] ? bytes[static_cast<size_t>(a)] : 0;
    return sum;
  }
  /// Bytes of memory that the plan needs in addition to the parameters.
  int64_t beside_parameters() const {
    int64_t sum = 0;
    for (int32_t a = 0; a < kArenas; ++a) sum += in_file[static_cast<size_t>(a)] ? 0 : bytes[static_cast<size_t>(a)];
    return sum - (in_file[static_cast<size_t>(Arena::parameters)] ? 0 : of(Arena::parameters));
  }
  int64_t of(Arena arena) const { return bytes[static_cast<size_t>(arena)]; }
};

}  // namespace st
