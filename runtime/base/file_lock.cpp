// What a file shared by several processes needs, for os.h: its folder, a lock beside it, and reading it without mapping it.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <thread>

#include "base/error.h"
#include "base/os.h"

namespace st::os {
namespace {

[[noreturn]] void refuse(const char* what, const std::string& path, int reason) {
  Error error(reason == ENOENT ? Code::not_found : Code::io, text(what, " ", path, ": ", reason_of(reason)));
  error.place.file = path;
  throw error;
}

struct Opened {
  int file;
  ~Opened() { ::close(file); }
};

}  // namespace

std::string read_file(const std::string& path, int64_t most) {
  constexpr int kTries = 4;
  for (int tries = 1;; ++tries) {
    // A file of another machine that was replaced there meanwhile: what stands at its path now is found by opening that again.
    const auto is_stale = [&] { return errno == ESTALE && tries < kTries; };
    const Opened opened{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};  // a pipe would wait for a writer
    if (opened.file < 0 && is_stale()) continue;
    if (opened.file < 0) refuse("open", path, errno);
    struct stat status {};
    if (fstat(opened.file, &status) != 0 && is_stale()) continue;
    if (status.st_mode == 0) refuse("stat", path, errno);
    if (!S_ISREG(status.st_mode)) refuse("read", path, S_ISDIR(status.st_mode) ? EISDIR : ENODEV);
    std::string content;
    ssize_t count = 0;
    do {
      std::array<char, 4096> piece;
      count = ::read(opened.file, piece.data(), piece.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 && is_stale()) break;
      if (count < 0) refuse("read", path, errno);
      content.append(piece.data(), static_cast<size_t>(count));
      if (static_cast<int64_t>(content.size()) > most) refuse("read", path, EFBIG);
    } while (count != 0);
    if (count == 0) return content;
  }
}

void make_folders(const std::string& path) {
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string folder = path.substr(0, end);
    const int reason = mkdir(folder.c_str(), 0777) == 0 ? EEXIST : errno;
    if (reason != EEXIST && kind_of(folder) != PathKind::folder) refuse("make folder", folder, reason);
    if (end == std::string::npos) break;
  }
  if (kind_of(path) != PathKind::folder) refuse("make folder", path, ENOTDIR);
}

FileLock::FileLock(const std::string& path, double patience) : file_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
  if (file_ < 0) refuse("lock", path, errno);
  const double end = seconds() + patience;
  while (flock(file_, LOCK_EX | LOCK_NB) != 0) {  // not the waiting kind: whoever holds it may have been stopped
    const int reason = errno;
    if ((reason == EWOULDBLOCK || reason == EINTR) && seconds() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      continue;
    }
    ::close(file_);
    refuse("lock", path, reason);
  }
}

FileLock::~FileLock() { ::close(file_); }

}  // namespace st::os
