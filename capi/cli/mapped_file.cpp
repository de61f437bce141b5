#include "mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "failure.h"

namespace cli {

MappedFile::MappedFile(const std::string& path) : path_(path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // O_NONBLOCK: a pipe must not block
  if (file < 0) refuse(path, ": ", std::strerror(errno));
  struct stat about {};
  void* start = MAP_FAILED;
  const bool is_file = fstat(file, &about) == 0 && S_ISREG(about.st_mode);
  if (is_file && about.st_size > 0) start = mmap(nullptr, static_cast<size_t>(about.st_size), PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  if (!is_file) refuse(path, " is not a file");
  if (about.st_size == 0) refuse(path, " is empty");
  if (start == MAP_FAILED) refuse(path, ": cannot map it: ", std::strerror(errno));
  bytes_ = {static_cast<const char*>(start), static_cast<size_t>(about.st_size)};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<char*>(bytes_.data()), bytes_.size());
}

}  // namespace cli
