#include "base/os/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <utility>

#include "base/error.h"
#include "base/file_error.h"

namespace st::os {
namespace {

class Descriptor {
 public:
  Descriptor(const char* what, const std::string& path, int flags) : fd_(open(path.c_str(), flags | O_CLOEXEC, 0666)) {
    if (fd_ < 0) fail_file(what, path, errno);
  }
  /// Takes ownership; negative: none.
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
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
  std::array<char, 4096> buffer;
  for (ssize_t count = 1; count > 0;) {
    count = ::read(file, buffer.data(), buffer.size());
    if (count > 0) content.append(buffer.data(), static_cast<size_t>(count));
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
  if (size == 0) return;  // the system refuses an empty mapping
  void* memory = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor.get(), 0);
  if (memory == MAP_FAILED) fail_file("map", path, errno);
  bytes_ = {static_cast<const std::byte*>(memory), size};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

std::string read_file(const std::string& path, int64_t most) {
  constexpr int kTries = 4;
  for (int tries = 1;; ++tries) {
    // ESTALE: another machine has replaced the file since it was opened. Opening the path again finds the new one.
    const auto is_stale = [&] { return errno == ESTALE && tries < kTries; };
    const Descriptor opened(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // a pipe would wait for a writer
    if (opened.get() < 0 && is_stale()) continue;
    if (opened.get() < 0) fail_file("open", path, errno);
    struct stat status {};
    if (fstat(opened.get(), &status) != 0 && is_stale()) continue;
    if (status.st_mode == 0) fail_file("stat", path, errno);
    if (!S_ISREG(status.st_mode)) fail_file("read", path, S_ISDIR(status.st_mode) ? EISDIR : ENODEV);
    std::string content;
    ssize_t count = 0;
    do {
      std::array<char, 4096> buffer;
      count = ::read(opened.get(), buffer.data(), buffer.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 && is_stale()) break;
      if (count < 0) fail_file("read", path, errno);
      content.append(buffer.data(), static_cast<size_t>(count));
      if (static_cast<int64_t>(content.size()) > most) fail_file("read", path, EFBIG);
    } while (count != 0);
    if (count == 0) return content;
  }
}

void make_folders(const std::string& path) {
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string folder = path.substr(0, end);
    const int reason = mkdir(folder.c_str(), 0777) == 0 ? EEXIST : errno;
    if (reason != EEXIST && kind_of(folder) != PathKind::folder) fail_file("make folder", folder, reason);
    if (end == std::string::npos) break;
  }
  if (kind_of(path) != PathKind::folder) fail_file("make folder", path, ENOTDIR);
}

}  // namespace st::os
