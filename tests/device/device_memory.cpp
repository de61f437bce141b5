#include "device_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>

#include "base/error.h"

namespace st::device_memory {
namespace {

constexpr int64_t kPage = 4096, kRoom = int64_t{64} << 30;  // of addresses; pages take memory when kernels first write them

/// One file, mapped twice: where addresses point, without access, and where kernels access it.
struct Mappings {
  int file = memfd_create("device", 0);
  uintptr_t addresses = 0, kernels = 0;
  std::atomic<int64_t> used = 0;

  Mappings() {
    require(file >= 0 && ftruncate(file, kRoom) == 0, Code::internal, "device memory: no file");
    addresses = map(PROT_NONE);
    kernels = map(PROT_READ | PROT_WRITE);
  }
  uintptr_t map(int access) const {
    void* const at = mmap(nullptr, kRoom, access, MAP_SHARED | MAP_NORESERVE, file, 0);
    require(at != MAP_FAILED, Code::internal, "device memory: no mapping");
    return reinterpret_cast<uintptr_t>(at);
  }
};

Mappings& mappings() {
  static Mappings& all = *new Mappings;
  return all;
}

int64_t in_pages(int64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

void forbid(int64_t offset, int64_t bytes) {
  if (bytes > 0)
    mprotect(reinterpret_cast<void*>(mappings().kernels + static_cast<uintptr_t>(offset)), static_cast<size_t>(bytes), PROT_NONE);
}

}  // namespace

Address allocate(int64_t bytes) {
  const int64_t size = in_pages(bytes), offset = mappings().used.fetch_add(size + kPage);
  require(offset + size + kPage <= kRoom, Code::out_of_memory, "device memory: ", kRoom, " bytes of addresses are used up");
  forbid(offset + size, kPage);
  return {mappings().addresses + static_cast<uintptr_t>(offset)};
}

void free(Address place, int64_t bytes) {
  const auto offset = static_cast<int64_t>(place.at - mappings().addresses);
  forbid(offset, in_pages(bytes));
  fallocate(mappings().file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, in_pages(bytes));
}

Address for_kernels(Address place) {
  if (!place) return place;
  const uintptr_t offset = place.at - mappings().addresses;
  require(offset < static_cast<uintptr_t>(kRoom), Code::internal, "device memory: a kernel got an address of the host's");
  return {mappings().kernels + offset};
}

}  // namespace st::device_memory
