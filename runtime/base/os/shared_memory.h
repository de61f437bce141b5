// Memory that processes of one machine have in common: a file that is nowhere but in memory (/dev/shm), found by its name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace st::os {

/// Pages of a SharedFile, mapped for reading and writing; what one process writes the others see. They outlive the file's object and name.
class SharedPages {
 public:
  SharedPages() = default;
  ~SharedPages();
  SharedPages(SharedPages&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  SharedPages& operator=(SharedPages&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  SharedPages(const SharedPages&) = delete;
  std::span<std::byte> bytes() const { return bytes_; }

 private:
  friend class SharedFile;
  explicit SharedPages(std::span<std::byte> bytes) : bytes_(bytes) {}
  std::span<std::byte> bytes_;
};

/// It lives as long as it has a name, or a process holds or maps it. Errors name its path: unavailable where the system has no such files,
/// busy where a name is taken by what is no file of this user.
class SharedFile {
 public:
  static constexpr int64_t kPage = 4096;

  /// New, without a name, empty: nothing is left of it should this process die.
  static SharedFile make();
  /// The one that has this name now, if any. Each user has names of his own; there is no '/' in them.
  static std::optional<SharedFile> open(const std::string& name);
  /// Those that this user has, each of which may be gone by now.
  static std::vector<std::string> names();
  ~SharedFile() { close(); }
  SharedFile(SharedFile&& other) noexcept : file_(std::exchange(other.file_, -1)), path_(std::move(other.path_)) {}
  SharedFile& operator=(SharedFile&&) = delete;
  SharedFile(const SharedFile&) = delete;

  /// Others can open it from here on. False: another file has the name.
  bool publish(const std::string& name);
  /// Takes the name away with which it was opened or published, unless another file has it by now. Waits for nobody for more than a second.
  void remove_name() noexcept;
  const std::string& path() const { return path_; }  // empty: it never had a name

  /// What is mapped of it stays.
  void close() noexcept;

  int64_t size() const;
  /// Makes it at least so long, and its memory sure to be there: without that a write to a full /dev/shm kills (SIGBUS). New bytes are
  /// zero. Throws out_of_memory with what was asked for and what there is.
  void reserve(int64_t bytes);
  /// `offset` is a multiple of kPage; all of it is reserved.
  SharedPages map(int64_t offset, int64_t bytes) const;

 private:
  SharedFile(int file, std::string path) : file_(file), path_(std::move(path)) {}
  int file_;
  std::string path_;
};

/// When this process began, by seconds(), which all processes of a machine have in common; to a
/// hundredth of one, and never too early; where that is not known, now.
double process_start();

}  // namespace st::os
