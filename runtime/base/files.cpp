// Files, for os.h: mapping one, and replacing one as a whole.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/os.h"

namespace st::os {
namespace {

[[noreturn]] void fail_file(const char* what, const std::string& path, int reason, int64_t offset = -1) {
  Error error(reason == ENOENT ? Code::not_found : Code::io,
              offset < 0 ? text(what, " ", path, ": ", std::generic_category().message(reason))
                         : text(what, " ", path, " at byte ", offset, ": ", std::generic_category().message(reason)));
  error.place.file = path;
  error.place.offset = offset;
  throw error;
}

class Descriptor {
 public:
  Descriptor(const char* what, const std::string& path, int flags) : fd_(open(path.c_str(), flags | O_CLOEXEC, 0666)) {
    if (fd_ < 0) fail_file(what, path, errno);
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  int close() { return ::close(std::exchange(fd_, -1)); }

 private:
  int fd_;
};

void write_all(int fd, std::span<const std::byte> bytes, const std::string& path, int64_t& offset) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_file("write", path, errno, offset);
    bytes = bytes.subspan(static_cast<size_t>(written));
    offset += written;
  }
}

void sync_folder_of(const std::string& path) {
  const auto parent = std::filesystem::path(path).parent_path();
  const std::string folder = parent.empty() ? "." : parent.string();
  const Descriptor descriptor("open folder", folder, O_RDONLY | O_DIRECTORY);
  // Some file systems cannot sync a folder (EINVAL); there the rename is as durable as they make it.
  if (fsync(descriptor.get()) != 0 && errno != EINVAL) fail_file("sync folder", folder, errno);
}

/// Removes the temporary file unless the rename has taken it.
class Temporary {
 public:
  explicit Temporary(std::string path) : path_(std::move(path)) {}
  ~Temporary() {
    if (!taken_) ::unlink(path_.c_str());
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  const std::string& path() const { return path_; }
  void rename_to(const std::string& path) {
    if (::rename(path_.c_str(), path.c_str()) != 0) fail_file("rename to", path, errno);
    taken_ = true;
  }

 private:
  std::string path_;
  bool taken_ = false;
};

}  // namespace

MappedFile::MappedFile(const std::string& path) {
  const Descriptor descriptor("open", path, O_RDONLY);
  struct stat status {};
  if (fstat(descriptor.get(), &status) != 0) fail_file("stat", path, errno);
  if (S_ISDIR(status.st_mode)) fail_file("map", path, EISDIR);
  const auto size = static_cast<size_t>(status.st_size);
  if (size == 0) return;  // an empty mapping is refused by the system
  void* memory = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor.get(), 0);
  if (memory == MAP_FAILED) fail_file("map", path, errno);
  bytes_ = {static_cast<const std::byte*>(memory), size};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

void write_file_atomically(const std::string& path,
                           const std::function<void(const std::function<void(std::span<const std::byte>)>& write)>& fill) {
  static std::atomic<uint64_t> number{0};  // threads of one process may write the same file: the last rename wins
  Temporary temporary(text(path, ".tmp-", process_id(), "-", number.fetch_add(1)));
  Descriptor descriptor("create", temporary.path(), O_WRONLY | O_CREAT | O_EXCL);
  int64_t offset = 0;
  fill([&](std::span<const std::byte> bytes) { write_all(descriptor.get(), bytes, path, offset); });
  if (fsync(descriptor.get()) != 0) fail_file("sync", path, errno, offset);
  if (descriptor.close() != 0) fail_file("close", path, errno, offset);
  temporary.rename_to(path);
  sync_folder_of(path);
}

}  // namespace st::os
