#include "base/os/whole_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/file_error.h"
#include "base/os/machine.h"
#include "base/os/write_signals.h"
#include "base/text.h"

namespace st::os {
namespace {

constexpr long kProcFileSystem = 0x9fa0;
constexpr int kMostLinks = 40;  // the kernel's limit

std::string folder_of(const std::string& path) {
  const size_t end = path.rfind('/');
  return end == std::string::npos ? "." : path.substr(0, std::max<size_t>(end, 1));
}

/// A descriptor that is written sequentially.
class Sink {
 public:
  Sink(int file, const std::string& path, const char* what) : path_(path), file_(file) {
    if (file_ < 0) fail_file(what, path_, errno);
  }
  ~Sink() {
    if (file_ >= 0) ::close(file_);
  }
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;

  int file() const { return file_; }
  void fill_by(const FillFile& fill) {
    fill([this](std::span<const std::byte> bytes) { write(bytes); });
  }
  void sync() {
    const WriteSignalsBlocked blocked;
    if (fsync(file_) != 0) fail_file("sync", path_, errno, offset_);
  }
  void close() {
    if (::close(std::exchange(file_, -1)) != 0) fail_file("close", path_, errno, offset_);
  }

 private:
  void write(std::span<const std::byte> bytes) {
    const WriteSignalsBlocked blocked;
    while (!bytes.empty()) {
      const ssize_t written = ::write(file_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail_file("write", path_, errno, offset_);
      bytes = bytes.subspan(static_cast<size_t>(written));
      offset_ += written;
    }
  }

  const std::string& path_;  // for errors; outlives this
  int file_;
  int64_t offset_ = 0;
};

/// A temporary file, removed on destruction unless it has replaced `path`.
class Temporary {
 public:
  /// Opens the first free name of the form `stem` and two numbers. A taken name belongs to a killed save or to a process of the same id on
  /// another host.
  Temporary(std::string path, const std::string& stem, mode_t mode)
      : path_(std::move(path)), sink_(open_new(stem, mode), path_, "create") {}
  ~Temporary() {
    if (!is_taken_) ::unlink(name_.c_str());
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  /// Takes over the mode and, where permitted, the owner of the file that it replaces.
  void take_mode_and_owner(const struct stat& old) {
    if (fchown(sink_.file(), old.st_uid, old.st_gid) != 0) errno = 0;  // not permitted: it stays ours, like a new file
    if (fchmod(sink_.file(), old.st_mode & 07777) != 0) fail_file("set the mode of", path_, errno);
  }

  void replace(const FillFile& fill) {
    sink_.fill_by(fill);
    sink_.sync();
    sink_.close();
    if (::rename(name_.c_str(), path_.c_str()) != 0) fail_file("rename to", path_, errno);
    is_taken_ = true;
    const std::string folder = folder_of(path_);
    const Sink opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC), folder, "open folder");
    // Some file systems cannot sync a folder (EINVAL); there the rename is as durable as they make it.
    if (fsync(opened.file()) != 0 && errno != EINVAL) fail_file("sync folder", folder, errno);
  }

 private:
  int open_new(const std::string& stem, mode_t mode) {
    static std::atomic<uint64_t> number{0};  // threads of one process may write the same file: the last rename wins
    for (;;) {
      name_ = text(stem, process_id(), "-", number.fetch_add(1));
      const int file = ::open(name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
      if (file >= 0) return file;
      if (errno == ENOENT) fail_at_file(Code::not_found, path_, text("create ", path_, ": there is no folder ", folder_of(path_)));
      if (errno != EEXIST) return file;
    }
  }

  const std::string path_;
  std::string name_;
  Sink sink_;
  bool is_taken_ = false;
};

bool is_descriptor(const std::string& link) {
  struct statfs system {};
  return statfs(folder_of(link).c_str(), &system) == 0 && static_cast<long>(system.f_type) == kProcFileSystem;
}

/// The regular file, existing or not, that opening `path` reaches through links; nullopt for anything else.
std::optional<std::string> file_reached_by(std::string path) {
  for (int links = 0; links < kMostLinks; ++links) {
    struct stat itself {};
    if (lstat(path.c_str(), &itself) != 0) {
      if (errno == ENOENT) return path;
      fail_file("look at", path, errno);
    }
    if (S_ISREG(itself.st_mode)) return path;
    if (S_ISDIR(itself.st_mode)) fail_file("write", path, EISDIR);
    if (!S_ISLNK(itself.st_mode) || is_descriptor(path)) return std::nullopt;
    std::array<char, PATH_MAX> target;
    const ssize_t length = readlink(path.c_str(), target.data(), target.size());
    if (length < 0) fail_file("read link", path, errno);
    const std::string named(target.data(), static_cast<size_t>(length));
    path = named.starts_with('/') ? named : text(folder_of(path), "/", named);
  }
  fail_file("write", path, ELOOP);
}

}  // namespace

void write_file_atomically(const std::string& path, const FillFile& fill) {
  // The rename would replace a device by a file: /dev/stdout, for every program.
  struct stat there {};
  if (::stat(path.c_str(), &there) == 0 && !S_ISREG(there.st_mode))
    fail_at_file(Code::invalid_argument, path, text("write ", path, ": it is not a regular file, so it cannot be replaced; name a file"));
  Temporary(path, path + ".tmp-", 0666).replace(fill);
}

void write_named_file(const std::string& path, const FillFile& fill) {
  const std::optional<std::string> file = file_reached_by(path);
  if (!file) {
    Sink stream(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC), path, "open");
    stream.fill_by(fill);
    return stream.close();
  }
  struct stat old {};
  const bool is_there = ::stat(file->c_str(), &old) == 0;
  // A short name, so that a `path` of the longest name that the file system allows can be written.
  Temporary made(*file, folder_of(*file) + "/.scaletrain-", is_there ? 0600 : 0666);
  if (is_there) made.take_mode_and_owner(old);
  made.replace(fill);
}

}  // namespace st::os
