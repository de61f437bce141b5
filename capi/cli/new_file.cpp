#include "new_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "failure.h"

namespace cli {

NewFile::NewFile(std::string path)
    : path_(std::move(path)),
      beside_(path_ + ".part-" + std::to_string(getpid())),
      file_(::open(beside_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) {
  if (file_ < 0) refuse(path_, ": cannot be written: ", std::strerror(errno));
}

NewFile::~NewFile() {
  if (file_ >= 0) close(file_);
  if (!beside_.empty()) unlink(beside_.c_str());
}

void NewFile::add(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t done = ::write(file_, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail("write");
    bytes.remove_prefix(static_cast<size_t>(done));
    size_ += done;
  }
}

void NewFile::finish() {
  if (fsync(file_) != 0) fail("fsync");
  if (std::rename(beside_.c_str(), path_.c_str()) != 0) fail("rename");
  beside_.clear();
}

void NewFile::fail(const char* doing) const {
  throw Failure(kFailed, path_ + ": " + doing + " at byte " + std::to_string(size_) + ": " + std::strerror(errno));
}

}  // namespace cli
