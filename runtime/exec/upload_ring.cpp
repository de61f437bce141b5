#include "exec/upload_ring.h"

#include <algorithm>
#include <cstring>

#include "ir/memory.h"

namespace st {

UploadRing::UploadRing(Backend& backend, Stream& stream, int64_t bytes) : stream_(stream), size_(align_up(bytes)) {
  for (Half& half : halves_) half = {backend.allocate_pinned(size_), backend.make_event()};
}

void UploadRing::write(Address to, const void* from, int64_t bytes) {
  for (int64_t done = 0; done < bytes;) {
    if (halves_[current_].used == size_) turn();
    Half& half = halves_[current_];
    std::byte* const pinned = half.memory->data() + half.used;
    const int64_t part = std::min(bytes - done, size_ - half.used);
    std::memcpy(pinned, static_cast<const std::byte*>(from) + done, static_cast<size_t>(part));
    stream_.copy_to_device(to + done, pinned, part);
    half.used += align_up(part);
    done += part;
  }
}

void UploadRing::turn() {
  stream_.record(*halves_[current_].is_read);
  current_ = 1 - current_;
  halves_[current_].is_read->wait();
  halves_[current_].used = 0;
}

}  // namespace st
