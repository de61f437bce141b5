#include "base/os/pages.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "base/error.h"
#include "base/os/machine.h"
#include "base/text.h"

namespace st::os {
namespace {

constexpr int64_t kHugePage = int64_t{2} << 20;

class NamelessFile {
 public:
  NamelessFile(const std::string& folder, int64_t bytes) : folder_(folder), bytes_(bytes) {
    std::string path = folder + "/scaletrain-offload-XXXXXX";
    file_ = mkostemp(path.data(), O_CLOEXEC);
    if (file_ < 0) refuse(errno);
    unlink(path.c_str());  // at once, so that nothing is left when the process dies
    try {
      reserve();
    } catch (...) {
      close(file_);
      throw;
    }
  }
  ~NamelessFile() { close(file_); }
  NamelessFile(const NamelessFile&) = delete;
  NamelessFile& operator=(const NamelessFile&) = delete;

  void write(const std::byte* from) {
    for (int64_t at = 0; at < bytes_;) {
      const ssize_t count = pwrite(file_, from + at, static_cast<size_t>(bytes_ - at), at);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) refuse(count < 0 ? errno : ENOSPC);
      at += count;
    }
  }

  /// `at` null: at any address; else replaces the mapping there.
  std::byte* map(std::byte* at) {
    void* memory = mmap(at, static_cast<size_t>(bytes_), PROT_READ | PROT_WRITE, MAP_SHARED | (at == nullptr ? 0 : MAP_FIXED), file_, 0);
    if (memory == MAP_FAILED) refuse(errno);
    return static_cast<std::byte*>(memory);
  }

 private:
  /// Writing a page for which the disk has no room would kill the process, so all space is reserved now.
  void reserve() {
    rlimit limit{};
    // Past this limit the system sends a signal instead of an error.
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && static_cast<rlim_t>(bytes_) > limit.rlim_cur)
      refuse(EFBIG);
    int error = 0;
    do error = posix_fallocate(file_, 0, bytes_);
    while (error == EINTR);
    if (error != 0) refuse(error);
  }

  [[noreturn]] void refuse(int error) const {
    struct statvfs there {};
    std::string free = "an unknown number of";
    if (statvfs(folder_.c_str(), &there) == 0)
      free = std::to_string(static_cast<int64_t>(there.f_bavail) * static_cast<int64_t>(there.f_frsize));
    Error refusal(Code::io, text("offload: cannot create a file of ", text_of_bytes(bytes_), " (", bytes_, " bytes) in ", folder_, ": ",
                                 reason_of(error), "; ", free, " bytes are free there"));
    refusal.place.file = folder_;
    throw refusal;
  }

  const std::string& folder_;
  int64_t bytes_;
  int file_;
};

}  // namespace

Pages::Pages(int64_t bytes) : size_(bytes) {
  check(bytes >= 0, "pages: bytes must be 0 or more, got ", bytes);
  if (bytes == 0) return;
  const auto refuse = [&](const char* why) {
    fail(Code::out_of_memory,
         text("pages: ", text_of_bytes(bytes), " (", bytes, " bytes) requested, ", text_of_bytes(available_memory()), " available", why));
  };
  // Linux overcommits and kills later, so a large request is checked against available memory. Small ones are not worth the check.
  if (bytes >= (int64_t{64} << 20) && bytes > available_memory() + free_swap()) refuse("");
  void* memory = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) refuse(text(": ", reason_of(errno)).c_str());
#ifdef MADV_HUGEPAGE
  if (bytes >= 2 * kHugePage) madvise(memory, static_cast<size_t>(bytes), MADV_HUGEPAGE);  // advice: a refusal is harmless
#endif
  data_ = static_cast<std::byte*>(memory);
}

Pages::~Pages() {
  if (data_) munmap(data_, static_cast<size_t>(size_));
}

Pages::Pages(Pages&& other) noexcept : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Pages& Pages::operator=(Pages&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

Pages::Pages(int64_t bytes, const std::string& folder) : size_(bytes) {
  check(bytes >= 0, "pages: bytes must be 0 or more, got ", bytes);
  if (bytes > 0) data_ = NamelessFile(folder, bytes).map(nullptr);
}

void Pages::move_to_file(const std::string& folder) {
  if (size_ == 0) return;
  NamelessFile file(folder, size_);
  file.write(data_);
  file.map(data_);
}

}  // namespace st::os
