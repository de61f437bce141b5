#include "base/os/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "base/file_error.h"
#include "base/os/machine.h"

namespace st::os {
FileLock::FileLock(const std::string& path, double patience) : file_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
  if (file_ < 0) fail_file("lock", path, errno);
  const double end = seconds() + patience;
  while (flock(file_, LOCK_EX | LOCK_NB) != 0) {  // non-blocking: its holder may be a stopped process
    const int reason = errno;
    if ((reason == EWOULDBLOCK || reason == EINTR) && seconds() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      continue;
    }
    ::close(file_);
    fail_file("lock", path, reason);
  }
}

FileLock::~FileLock() { ::close(file_); }

}  // namespace st::os
