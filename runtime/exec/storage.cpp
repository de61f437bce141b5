#include "exec/storage.h"

#include "base/error.h"

namespace st {

Storage Storage::with_same_parameters() const {
  Storage other(backend_);
  constexpr auto kParameters = static_cast<size_t>(Arena::parameters);
  other.buffers_[kParameters] = buffers_[kParameters];
  return other;
}

Buffer& Storage::arena(Arena arena, int64_t bytes) {
  auto& buffer = buffers_[static_cast<size_t>(arena)];
  if (!buffer) buffer = backend_.allocate(bytes);
  require(buffer->size() == bytes, Code::wrong_state, "storage: the plan needs ", bytes, " bytes of ", name_of(arena), ", the model has ",
          buffer->size());
  return *buffer;
}

std::byte* Storage::data(Arena arena) const {
  const auto& buffer = buffers_[static_cast<size_t>(arena)];
  return buffer ? buffer->data() : nullptr;
}

int64_t Storage::bytes() const {
  int64_t sum = 0;
  for (const auto& buffer : buffers_)
    if (buffer) sum += buffer->size();
  return sum;
}

}  // namespace st
