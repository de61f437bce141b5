// Memory that outlives a plan: parameters, gradients and optimizer state. All plans of a model place them equally, whatever the batch. A
// model's storage has its parameters; that of a trainer's rank shares these and has its own gradients and optimizer state.
#pragma once

#include <array>
#include <initializer_list>
#include <memory>
#include <string>

#include "backend/backend.h"
#include "ir/memory.h"

namespace st {

class Storage {
 public:
  explicit Storage(Backend& backend) : backend_(backend) {}

  /// A storage that shares the parameters and nothing else, for another trainer of the model: trainers do not share moments.
  Storage with_same_parameters() const;

  /// A storage that shares these arenas and nothing else.
  Storage sharing(std::initializer_list<Arena> arenas) const;

  /// Replaces an arena by that of another storage, shared.
  void share(const Storage& of, Arena arena) { buffers_[static_cast<size_t>(arena)] = of.buffers_[static_cast<size_t>(arena)]; }
  /// Whether another storage shares the arena.
  bool is_shared(Arena arena) const { return buffers_[static_cast<size_t>(arena)].use_count() > 1; }

  /// Creates the selected arenas, from now on, in a file in `folder`.
  void keep_in_file(const std::array<bool, kArenas>& arenas, std::string folder);

  /// The arena's buffer, created zeroed on first use, in the host's memory if `on_host` (Backend::allocate_on_host). Throws wrong_state if
  /// it exists with another size, or elsewhere.
  Buffer& arena(Arena arena, int64_t bytes, bool on_host = false);
  /// Whether an arena is in a file; not if it does not exist yet.
  bool is_in_file(Arena arena) const;
  /// Start of an arena in the host's memory, for copies; null: it is in the device's, or does not exist.
  std::byte* pinned(Arena arena) const;
  /// Start of an arena; none if it does not exist yet.
  Address data(Arena arena) const;
  int64_t bytes() const;
  int64_t memory_bytes() const;  // of the device: without arenas in files or in the host's memory
  /// Moves an existing arena to a file in `folder` without changing its address (Buffer::move_to_file).
  void move_to_file(Arena arena, const std::string& folder);
  Backend& backend() const { return backend_; }

  static bool holds(Arena arena) { return arena == Arena::parameters || arena == Arena::gradients || arena == Arena::optimizer; }

 private:
  Backend& backend_;
  std::array<bool, kArenas> in_file_{};
  std::string folder_;
  std::array<std::shared_ptr<Buffer>, kArenas> buffers_;
};

}  // namespace st
