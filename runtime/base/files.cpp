// Files, for os.h: mapping one, and replacing one as a whole.
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <memory>
#include <utility>

#include "base/error.h"
#include "base/os.h"

namespace st::os {
namespace {

[[noreturn]] void fail_file(const char* what, const std::string& path, int reason, int64_t offset = -1) {
  Error error(reason == ENOENT ? Code::not_found : Code::io, offset < 0
                                                                 ? text(what, " ", path, ": ", reason_of(reason))
                                                                 : text(what, " ", path, " at byte ", offset, ": ", reason_of(reason)));
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
  const size_t end = path.rfind('/');
  const std::string folder = end == std::string::npos ? "." : path.substr(0, std::max<size_t>(end, 1));
  const Descriptor descriptor("open folder", folder, O_RDONLY | O_DIRECTORY);
  // Some file systems cannot sync a folder (EINVAL); there the rename is as durable as they make it.
  if (fsync(descriptor.get()) != 0 && errno != EINVAL) fail_file("sync folder", folder, errno);
}

/// A file under a name of its own, removed unless the rename has taken it.
class Temporary {
 public:
  /// Opens the first free name. One that is taken belongs to a killed save or to a process of the same number on another host: not ours.
  explicit Temporary(const std::string& target) {
    // The rename would put a file in the place of a device: of /dev/stdout, for every program.
    struct stat there {};
    check(::stat(target.c_str(), &there) != 0 || S_ISREG(there.st_mode), "write ", target,
          ": it is no regular file, whose place the new one could take; name a file");
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

struct CloseFolder {
  void operator()(DIR* folder) const { closedir(folder); }
};

using Takes = std::function<bool(std::string_view name, bool is_folder)>;

/// Adds the files below `top`/`inside`; `inside` is empty or ends with a slash.
void add_files(const std::string& top, const std::string& inside, const Takes& takes, std::vector<std::string>& files) {
  const std::string folder = text(top, "/", inside);
  const std::unique_ptr<DIR, CloseFolder> open_folder(opendir(folder.c_str()));
  if (!open_folder) fail_file("read folder", folder, errno);
  for (;;) {
    errno = 0;
    const dirent* entry = readdir(open_folder.get());
    if (entry == nullptr && errno != 0) fail_file("read folder", folder, errno);
    if (entry == nullptr) return;
    const std::string name = entry->d_name, path = inside + name;
    if (name == "." || name == "..") continue;
    struct stat itself {
    }, target{};
    const int at = dirfd(open_folder.get());
    if (fstatat(at, entry->d_name, &itself, AT_SYMLINK_NOFOLLOW) != 0) continue;  // removed meanwhile
    const bool is_folder = S_ISDIR(itself.st_mode);
    if (!takes(name, is_folder)) continue;
    if (is_folder)
      add_files(top, path + "/", takes, files);
    else if (fstatat(at, entry->d_name, &target, 0) == 0 && S_ISREG(target.st_mode))
      files.push_back(path);
  }
}

}  // namespace

PathKind kind_of(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return PathKind::none;
    fail_file("look at", path, errno);
  }
  return S_ISREG(status.st_mode) ? PathKind::file : S_ISDIR(status.st_mode) ? PathKind::folder : PathKind::other;
}

std::vector<std::string> files_below(const std::string& folder, const Takes& takes) {
  std::vector<std::string> files;
  add_files(folder, "", takes, files);
  std::ranges::sort(files);
  return files;
}

std::string short_file(const std::string& path) {
  std::string content;
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return content;
  std::array<char, 4096> piece;
  for (ssize_t count = 1; count > 0;) {
    count = ::read(file, piece.data(), piece.size());
    if (count > 0) content.append(piece.data(), static_cast<size_t>(count));
  }
  ::close(file);
  return content;
}

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
