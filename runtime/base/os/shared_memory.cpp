#include "base/os/shared_memory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/os/file_access.h"
#include "base/os/files.h"
#include "base/os/machine.h"
#include "base/text.h"

namespace st::os {
namespace {

constexpr const char* kSharedFolder = "/dev/shm";

std::string prefix_of_names() { return text("scaletrain-", geteuid(), "-"); }
std::string shared_path(const std::string& name) { return text(kSharedFolder, "/", prefix_of_names(), name); }

[[noreturn]] void refuse_shared(Code code, const char* what, const std::string& path, const std::string& reason) {
  Error error(code, text("shared memory: ", what, " ", path, ": ", reason));
  error.place.file = path;
  throw error;
}
[[noreturn]] void refuse_shared(const char* what, const std::string& path, int reason) {
  refuse_shared(Code::unavailable, what, path, reason_of(reason));
}

}  // namespace

SharedPages::~SharedPages() {
  if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
}

SharedFile SharedFile::make() {
  const int file = ::open(kSharedFolder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file < 0) refuse_shared("make a file in", kSharedFolder, errno);
  return {file, {}};
}

std::optional<SharedFile> SharedFile::open(const std::string& name) {
  std::string path = shared_path(name);
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  SharedFile opened(file, std::move(path));
  if (file < 0 && errno == ENOENT) return std::nullopt;
  if (file < 0 && errno != EACCES) refuse_shared("open", opened.path_, errno);
  struct stat status {};
  if (file < 0 || fstat(file, &status) != 0 || !S_ISREG(status.st_mode) || status.st_uid != geteuid())
    refuse_shared(Code::busy, "open", opened.path_, "it is not a regular file of this user; remove it, or give the job another name");
  return opened;
}

std::vector<std::string> SharedFile::names() {
  const std::string prefix = prefix_of_names();
  std::vector<std::string> found;
  for (const FolderEntry& entry : list_folder(kSharedFolder))
    if (entry.kind == PathKind::file && entry.name.starts_with(prefix)) found.push_back(entry.name.substr(prefix.size()));
  return found;
}

void SharedFile::close() noexcept {
  if (file_ >= 0) ::close(std::exchange(file_, -1));
}

bool SharedFile::publish(const std::string& name) {
  path_ = shared_path(name);
  if (linkat(AT_FDCWD, text("/proc/self/fd/", file_).c_str(), AT_FDCWD, path_.c_str(), AT_SYMLINK_FOLLOW) == 0) return true;
  if (errno != EEXIST) refuse_shared("name", path_, errno);
  return false;
}

void SharedFile::remove_name() noexcept {
  // A file's name is removed only by a process that holds the file's lock. So between the check of the name and its removal no other
  // process can have removed it or given it to another file.
  const double end = seconds() + 1;
  while (flock(file_, LOCK_EX | LOCK_NB) != 0) {
    if (seconds() > end) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  struct stat own {
  }, named{};
  if (fstat(file_, &own) == 0 && lstat(path_.c_str(), &named) == 0 && own.st_dev == named.st_dev && own.st_ino == named.st_ino)
    unlink(path_.c_str());
  flock(file_, LOCK_UN);  // a forked child may share the lock: closing the file would not release it
}

int64_t SharedFile::size() const {
  struct stat status {};
  return fstat(file_, &status) == 0 ? status.st_size : 0;
}

void SharedFile::reserve(int64_t bytes) {
  int reason = EINTR;
  while (reason == EINTR) reason = posix_fallocate(file_, 0, bytes);
  if (reason == 0) return;
  struct statvfs status {};
  const int64_t free = fstatvfs(file_, &status) == 0 ? static_cast<int64_t>(status.f_bavail * status.f_frsize) : 0;
  refuse_shared(Code::out_of_memory, "reserve memory in", kSharedFolder,
                text(text_of_bytes(bytes), " (", bytes, " bytes) requested, ", text_of_bytes(free), " free: ", reason_of(reason)));
}

SharedPages SharedFile::map(int64_t offset, int64_t bytes) const {
  void* memory = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, file_, offset);
  if (memory == MAP_FAILED)
    refuse_shared(Code::out_of_memory, "map a file of", kSharedFolder, text(text_of_bytes(bytes), ": ", reason_of(errno)));
  return SharedPages({static_cast<std::byte*>(memory), static_cast<size_t>(bytes)});
}

double process_start() {
  constexpr int kStartTime = 22;  // proc(5): in ticks since boot; the second field, the name, may contain spaces
  const double now = seconds();
  std::string all;
  try {
    all = read_file("/proc/self/stat", SharedFile::kPage);
  } catch (const Error&) {
    return now;
  }
  size_t begin = all.rfind(')');
  for (int field = 2; field < kStartTime && begin != std::string::npos; ++field) begin = all.find(' ', begin + 1);
  if (begin == std::string::npos) return now;
  const int64_t ticks = whole_number(std::string_view(all).substr(begin + 1, all.find(' ', begin + 1) - begin - 1), -1);
  timespec since_boot{};
  if (ticks < 0 || clock_gettime(CLOCK_BOOTTIME, &since_boot) != 0) return now;
  const double age = static_cast<double>(since_boot.tv_sec) + static_cast<double>(since_boot.tv_nsec) * 1e-9 -
                     static_cast<double>(ticks + 1) / static_cast<double>(sysconf(_SC_CLK_TCK));
  return now - std::max(age, 0.0);
}

}  // namespace st::os
