#include "base/os/file_access.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <string_view>

#include "base/error.h"
#include "base/file_error.h"
#include "base/os/write_signals.h"

namespace st::os {
namespace {

// A writer had the folder a moment ago, so a missing one is a disk failure. A reader may have the wrong name.
[[noreturn]] void fail_write(const char* what, const std::string& path, int64_t offset = -1) {
  fail_file(Code::io, what, path, errno, offset);
}
[[noreturn]] void fail_read(const char* what, const std::string& path, int64_t offset = -1) {
  fail_file(errno == ENOENT ? Code::not_found : Code::io, what, path, errno, offset);
}

/// Opening a pipe, a link or a folder as a file fails: its kind says more than the system's reason.
[[noreturn]] void fail_open(Code code, const char* what, const std::string& path, int reason, const char* way_out) {
  const std::string stranger = wrong_kind_at(path, PathKind::file);
  if (stranger.empty()) fail_file(code, what, path, reason);
  Error error(Code::io, text(what, " ", path, ": expected a file, found ", stranger, "; ", way_out));
  error.place.file = path;
  throw error;
}

struct CloseListing {
  void operator()(DIR* folder) const { closedir(folder); }
};

PathKind kind_from(mode_t mode) {
  if (S_ISREG(mode)) return PathKind::file;
  return S_ISDIR(mode) ? PathKind::folder : PathKind::other;
}

/// ESTALE: another machine has replaced the file since it was opened here. Opening the path again finds the new one, if it has not been
/// removed as well, so the tries are limited.
constexpr int kStaleTries = 4;

/// False: the folder does not exist.
bool list_into(std::vector<FolderEntry>& entries, const std::string& folder, int flags, int tries = kStaleTries) {
  const int file = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);
  if (file < 0 && errno == ENOENT) return false;
  if (file < 0) fail_read("read folder", folder);
  const std::unique_ptr<DIR, CloseListing> listing(fdopendir(file));
  if (!listing) {
    const int reason = errno;
    ::close(file);
    fail_file(Code::io, "read folder", folder, reason);
  }
  for (;;) {
    errno = 0;
    const dirent* entry = readdir(listing.get());
    if (entry == nullptr && errno == ESTALE && tries > 1) {
      entries.clear();
      return list_into(entries, folder, flags, tries - 1);
    }
    if (entry == nullptr && errno != 0) fail_read("read folder", folder);
    if (entry == nullptr) break;
    std::string name = entry->d_name;
    struct stat itself {};
    if (name == "." || name == "..") continue;
    if (fstatat(file, name.c_str(), &itself, AT_SYMLINK_NOFOLLOW) != 0) continue;  // removed meanwhile
    entries.push_back({std::move(name), kind_from(itself.st_mode)});
  }
  std::sort(entries.begin(), entries.end(), [](const FolderEntry& a, const FolderEntry& b) { return a.name < b.name; });
  return true;
}

bool same_file(const struct stat& a, const struct stat& b) { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }

}  // namespace

OutputFile::OutputFile(std::string path, Open how)
    : path_(std::move(path)),
      file_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | (how == Open::fresh ? O_EXCL : O_NOFOLLOW | O_NONBLOCK), 0666)) {
  constexpr const char *kCreate = "create", *kWayOut = "remove it";
  if (file_ < 0) fail_open(Code::io, kCreate, path_, errno, kWayOut);
  struct stat status {};
  if (how == Open::fresh || (fstat(file_, &status) == 0 && S_ISREG(status.st_mode))) return;
  ::close(file_);  // a device, or a pipe with a reader
  fail_open(Code::io, kCreate, path_, ENODEV, kWayOut);
}

OutputFile::~OutputFile() {
  if (file_ >= 0) ::close(file_);
}

void OutputFile::write_at(int64_t offset, std::span<const std::byte> bytes) {
  const WriteSignalsBlocked blocked;
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(file_, bytes.data(), bytes.size(), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EINVAL && is_direct_) {  // O_DIRECT was accepted but does not work: use the cache
      go_through_cache();
      continue;
    }
    if (written < 0) fail_write("write", path_, offset);
    if (written == 0) fail_file(Code::io, "write", path_, ENOSPC, offset);  // should not happen, but would loop forever
    bytes = bytes.subspan(static_cast<size_t>(written));
    offset += written;
  }
}

bool OutputFile::go_direct() {
  const int flags = fcntl(file_, F_GETFL);
  is_direct_ = flags >= 0 && fcntl(file_, F_SETFL, flags | O_DIRECT) == 0;
  return is_direct_;
}

void OutputFile::go_through_cache() {
  is_direct_ = false;
  const int flags = fcntl(file_, F_GETFL);
  if (flags < 0 || fcntl(file_, F_SETFL, flags & ~O_DIRECT) != 0) fail_write("write", path_);
}

void OutputFile::start_writeback(int64_t offset, int64_t bytes) { write_back(offset, bytes, SYNC_FILE_RANGE_WRITE); }

void OutputFile::finish_writeback(int64_t offset, int64_t bytes) {
  write_back(offset, bytes, SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
  posix_fadvise(file_, offset, bytes, POSIX_FADV_DONTNEED);
}

void OutputFile::write_back(int64_t offset, int64_t bytes, unsigned how) {
  // fsync does not repeat an error reported here. An unsupported call is not an error.
  if (sync_file_range(file_, offset, bytes, how) != 0 && errno != EINVAL && errno != ENOSYS && errno != ESPIPE)
    fail_write("write", path_, offset);
}

void OutputFile::sync() {
  while (fsync(file_) != 0)
    if (errno != EINTR) fail_write("sync", path_);
}

void OutputFile::close() {
  if (::close(std::exchange(file_, -1)) != 0 && errno != EINTR) fail_write("close", path_);  // EINTR: Linux has closed it anyway
}

// O_NONBLOCK: opening a pipe would wait for a writer.
InputFile::InputFile(std::string path) : path_(std::move(path)), file_(::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
  constexpr const char *kOpen = "open", *kWayOut = "put the file back";
  if (file_ < 0) fail_open(errno == ENOENT ? Code::not_found : Code::io, kOpen, path_, errno, kWayOut);
  struct stat status {};
  int reason = fstat(file_, &status) == 0 ? 0 : errno;
  if (reason == 0 && !S_ISREG(status.st_mode)) reason = S_ISDIR(status.st_mode) ? EISDIR : ENODEV;
  if (reason != 0) {
    ::close(file_);
    fail_open(Code::io, kOpen, path_, reason, kWayOut);
  }
  size_ = status.st_size;
}

InputFile::~InputFile() {
  if (file_ >= 0) ::close(file_);
}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)), file_(std::exchange(other.file_, -1)), size_(other.size_) {}

void InputFile::read_at(int64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t got = ::pread(file_, out.data(), out.size(), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_read("read", path_, offset);
    if (got == 0) {
      Error error(Code::corrupt,
                  text(path_, ": the file ends at or before byte ", offset, ", where ", out.size(), " more bytes are needed"));
      error.place.file = path_;
      error.place.offset = offset;
      throw error;
    }
    out = out.subspan(static_cast<size_t>(got));
    offset += got;
  }
}

std::optional<FileHold> FileHold::take(const std::string& path, Kind kind) {
  const int lock = kind == Kind::shared ? LOCK_SH : LOCK_EX;
  for (int stale = 0;;) {
    const auto fail_or_again = [&] {
      if (errno != ESTALE || ++stale == kStaleTries) fail_read("hold", path);
    };
    // On NFS the server holds the lock and grants an exclusive one only for a file opened for writing.
    int file = kind == Kind::shared ? -1 : ::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) file = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) {
      fail_or_again();
      continue;
    }
    FileHold hold(file);
    int refused = 0;
    do refused = flock(file, lock | LOCK_NB);
    while (refused != 0 && errno == EINTR);
    if (refused != 0 && errno == EWOULDBLOCK) return std::nullopt;
    struct stat held {
    }, there{};
    if (refused != 0 || fstat(file, &held) != 0 || ::stat(path.c_str(), &there) != 0) {
      fail_or_again();
      continue;
    }
    if (same_file(held, there)) return hold;  // else the file was replaced: lock the new one
  }
}

FileHold::~FileHold() {
  if (file_ < 0) return;
  // A forked child shares the lock, so closing our descriptor would not release it. A child must not release its parent's lock.
  if (process_ == process_id()) flock(file_, LOCK_UN);
  ::close(file_);
}

std::vector<FolderEntry> list_folder(const std::string& folder) {
  std::vector<FolderEntry> entries;
  if (!list_into(entries, folder, 0)) fail_file(Code::not_found, "read folder", folder, ENOENT);
  return entries;
}

std::string wrong_kind_at(const std::string& path, PathKind belongs) {
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0) return "";
  if (S_ISLNK(status.st_mode)) {
    if (belongs == PathKind::folder && ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) return "";
    std::array<char, 4096> target{};
    const ssize_t size = readlink(path.c_str(), target.data(), target.size());
    const std::string_view to(target.data(), static_cast<size_t>(std::max<ssize_t>(size, 0)));
    return text(::stat(path.c_str(), &status) == 0 ? "a link to " : "a broken link to ", to);
  }
  if (kind_from(status.st_mode) == belongs) return "";
  if (S_ISREG(status.st_mode)) return "a file";
  if (S_ISDIR(status.st_mode)) return "a folder";
  return S_ISFIFO(status.st_mode) ? "a pipe" : S_ISSOCK(status.st_mode) ? "a socket" : "a device";
}

void require_kind(const std::string& path, PathKind belongs) {
  const std::string stranger = wrong_kind_at(path, belongs);
  if (stranger.empty()) return;
  Error error(Code::invalid_argument, text(path, ": expected a ", belongs == PathKind::file ? "file" : "folder", ", found ", stranger,
                                           "; remove it, or name another folder"));
  error.place.file = path;
  throw error;
}

bool make_folder(const std::string& path) {
  if (mkdir(path.c_str(), 0777) == 0) return true;
  if (errno != EEXIST) fail_write("make folder", path);
  return false;
}

void sync_folder(const std::string& folder) {
  const int file = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) fail_write("open folder", folder);
  // Some file systems cannot sync a folder (EINVAL); there a rename is as durable as they make it.
  const int reason = fsync(file) == 0 || errno == EINVAL ? 0 : errno;
  ::close(file);
  if (reason != 0) fail_file(Code::io, "sync folder", folder, reason);
}

void rename_file(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) == 0) return;
  const int reason = errno;
  fail_file(Code::io, text("rename ", from, " to").c_str(), to, reason);
}

bool remove_file(const std::string& path) {
  if (::unlink(path.c_str()) == 0) return true;
  if (errno != ENOENT) fail_write("remove", path);
  return false;
}

bool remove_folder(const std::string& path) {
  for (int attempt = 0;; ++attempt) {
    std::vector<FolderEntry> entries;
    if (!list_into(entries, path, O_NOFOLLOW)) return attempt > 0;
    for (const FolderEntry& entry : entries) {
      const std::string inside = path + "/" + entry.name;
      if (entry.kind == PathKind::folder)
        remove_folder(inside);
      else
        remove_file(inside);
    }
    if (::rmdir(path.c_str()) == 0) return true;
    if (errno == ENOENT) return true;
    if ((errno != ENOTEMPTY && errno != EEXIST) || attempt == 8) fail_write("remove folder", path);  // another process keeps filling it
  }
}

int64_t free_space(const std::string& folder) {
  struct statvfs status {};
  if (statvfs(folder.c_str(), &status) != 0) fail_read("get the free space of", folder);
  int64_t bytes = 0;
  return __builtin_mul_overflow(status.f_bavail, status.f_frsize, &bytes) ? INT64_MAX : bytes;
}

}  // namespace st::os
