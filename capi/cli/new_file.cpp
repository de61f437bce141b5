#include "new_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "failure.h"

namespace cli {

namespace {

namespace fs = std::filesystem;

constexpr int kMostLinks = 40;  // the kernel's limit

/// Opens a file of a new name in the folder: other processes and other NewFiles of this one may write there. A short name: that of the file
/// which it becomes may already be as long as the file system allows.
int open_new(const fs::path& folder, mode_t mode, std::string& name) {
  static std::atomic<int> number{0};
  for (;;) {
    name = folder / (".scaletrain-" + std::to_string(getpid()) + "-" + std::to_string(number++));
    const int file = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (file >= 0 || errno != EEXIST) return file;
  }
}

}  // namespace

std::string file_reached_by(const std::string& named) {
  fs::path path = named;
  std::error_code ignored;
  for (int links = 0; links < kMostLinks && fs::is_symlink(path, ignored); ++links) {
    if (path.string().starts_with("/proc/")) return "";
    path = path.parent_path() / fs::read_symlink(path, ignored);
  }
  const fs::file_type type = fs::status(path, ignored).type();  // asked once: another rank may make or remove it meanwhile
  return type == fs::file_type::not_found || type == fs::file_type::regular ? path.string() : "";
}

NewFile::NewFile(std::string path) : path_(std::move(path)), target_(file_reached_by(path_)) {
  struct stat old {};
  if (target_.empty()) {
    file_ = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  } else {
    const bool is_there = stat(target_.c_str(), &old) == 0;
    file_ = open_new(fs::path(target_).parent_path(), is_there ? 0600 : 0666, temporary_);
    if (file_ >= 0 && is_there) fchmod(file_, old.st_mode & 07777);
  }
  if (file_ < 0) refuse(path_, ": cannot write it: ", std::strerror(errno));
}

NewFile::~NewFile() {
  if (file_ >= 0) close(file_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
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
  if (temporary_.empty()) return;  // a device or a pipe was written directly
  if (fsync(file_) != 0) fail("fsync");
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0) fail("rename");
  temporary_.clear();
}

void NewFile::fail(const char* doing) const {
  throw Failure(kFailed, path_ + ": " + doing + " at byte " + std::to_string(size_) + ": " + std::strerror(errno));
}

}  // namespace cli
