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

/// A file under a name of its own, removed unless the rename has taken it.
class Temporary {
 public:
  /// Opens the first free name. One that is taken belongs to a killed save or to a process of the same number on another host: not ours.
  explicit Temporary(const std::string& target) {
    static std::atomic<uint64_t> number{0};  // threads of one process may write the same file: the last rename wins
    for (;;) {
      path_ = text(target, ".tmp-", process_id(), "-", number.fetch_add(1));
      file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      if (file_ >= 0) return;
      if (errno != EEXIST) fail_file("create", path_, errno);
    }
  }
  ~Temporary() {
    if (file_ >= 0) ::close(file_);
    if (!taken_) ::unlink(path_.c_str());
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  int file() const { return file_; }
  int close() { return ::close(std::exchange(file_, -1)); }
  void rename_to(const std::string& path) {
    if (::rename(path_.c_str(), path.c_str()) != 0) fail_file("rename to", path, errno);
    taken_ = true;
  }

 private:
  std::string path_;
  int file_ = -1;
  bool taken_ = false;
};

}  // namespace

MappedFile::MappedFile(const std::string& path) {
  const Descriptor descriptor("open", path, O_RDONLY | O_NONBLOCK);  // a pipe would wait for a writer
  struct stat status {};
  if (fstat(descriptor.get(), &status) != 0) fail_file("stat", path, errno);
  if (S_ISDIR(status.st_mode)) fail_file("map", path, EISDIR);
  if (!S_ISREG(status.st_mode)) fail_file("map (it is a device or a pipe, not a file)", path, ENODEV);
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
  Temporary temporary(path);
  int64_t offset = 0;
  fill([&](std::span<const std::byte> bytes) { write_all(temporary.file(), bytes, path, offset); });
  if (fsync(temporary.file()) != 0) fail_file("sync", path, errno, offset);
  if (temporary.close() != 0) fail_file("close", path, errno, offset);
  temporary.rename_to(path);
  sync_folder_of(path);
}

}  // namespace st::os
