#include "exec/storage.h"

#include <utility>

#include "base/error.h"

namespace st {

Storage Storage::with_same_parameters() const { return sharing({Arena::parameters}); }

Storage Storage::sharing(std::initializer_list<Arena> arenas) const {
  Storage other(backend_);
  for (const Arena arena : arenas) other.buffers_[static_cast<size_t>(arena)] = buffers_[static_cast<size_t>(arena)];
  return other;
}

void Storage::keep_in_file(const std::array<bool, kArenas>& arenas, std::string folder) {
  in_file_ = arenas;
  folder_ = std::move(folder);
}

Buffer& Storage::arena(Arena arena, int64_t bytes, bool on_host) {
  auto& buffer = buffers_[static_cast<size_t>(arena)];
  if (!buffer && in_file_[static_cast<size_t>(arena)])
    buffer = backend_.allocate_in_file(bytes, folder_);
  else if (!buffer && on_host)
    buffer = backend_.allocate_on_host(bytes);
  else if (!buffer)
    buffer = backend_.allocate(bytes, role_of(arena));
  require(buffer->size() == bytes, Code::wrong_state, "storage: the plan needs ", bytes, " bytes of ", name_of(arena), ", the model has ",
          buffer->size());
  require(bytes == 0 || on_host == (buffer->pinned() != nullptr), Code::wrong_state, "storage: the plan needs ", name_of(arena), " in the ",
          on_host ? "host's" : "device's", " memory, which is elsewhere");
  return *buffer;
}

std::byte* Storage::pinned(Arena arena) const {
  const auto& buffer = buffers_[static_cast<size_t>(arena)];
  return buffer ? buffer->pinned() : nullptr;
}

Address Storage::data(Arena arena) const {
  const auto& buffer = buffers_[static_cast<size_t>(arena)];
  return buffer ? buffer->data() : Address();
}

void Storage::move_to_file(Arena arena, const std::string& folder) {
  if (const auto& buffer = buffers_[static_cast<size_t>(arena)]) buffer->move_to_file(folder);
}

bool Storage::is_in_file(Arena arena) const {
  const auto& buffer = buffers_[static_cast<size_t>(arena)];
  return buffer && buffer->is_in_file();
}

int64_t Storage::memory_bytes() const {
  int64_t sum = 0;
  for (const auto& buffer : buffers_)
    if (buffer && !buffer->is_in_file() && buffer->pinned() == nullptr) sum += buffer->size();
  return sum;
}

int64_t Storage::bytes() const {
  int64_t sum = 0;
  for (const auto& buffer : buffers_)
    if (buffer) sum += buffer->size();
  return sum;
}

}  // namespace st
