// What outlives a plan: parameters, gradients and optimizer state. Every plan of one model places them alike, whatever its batch. A model's
// storage has its parameters; a trainer's has the same ones, and gradients and optimizer state of its own.
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

  /// A storage with the same parameters and nothing else yet: two trainers of one model do not share moments.
  Storage with_same_parameters() const;

  /// A storage that has what this one has in these arenas, and nothing else yet.
  Storage sharing(std::initializer_list<Arena> arenas) const;

  /// Has from here on what that one has of an arena, in place of its own.
  void share(const Storage& of, Arena arena) { buffers_[static_cast<size_t>(arena)] = of.buffers_[static_cast<size_t>(arena)]; }
  /// Whether another storage has it too.
  bool is_shared(Arena arena) const { return buffers_[static_cast<size_t>(arena)].use_count() > 1; }

  /// Arenas that are made from here on lie in a file in `folder`, where they are to.
  void keep_in_file(const std::array<bool, kArenas>& arenas, std::string folder);

  /// The arena's buffer, made zero on first use. Throws wrong_state when it stands with another size.
  Buffer& arena(Arena arena, int64_t bytes);
  /// Where an arena begins; null while it has not been made.
  std::byte* data(Arena arena) const;
  int64_t bytes() const;
  int64_t memory_bytes() const;  // without what lies in files
  /// What has been made of an arena goes to a file in `folder`, and stays where it is for all that know its address (Buffer::move_to_file).
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
