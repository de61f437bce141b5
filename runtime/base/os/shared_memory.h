// Memory shared by processes of one machine: named files that exist in memory only (/dev/shm).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace st::os {

/// Pages of a SharedFile, mapped read-write: all processes see each other's writes. They outlive the SharedFile object and its name.
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

/// Exists as long as it has a name or any process has it open or mapped. Errors name its path: unavailable where the system has no such
/// files, busy where a name is taken by something other than a file of this user.
class SharedFile {
 public:
  static constexpr int64_t kPage = 4096;

  /// New, empty and unnamed: nothing remains if this process dies.
  static SharedFile make();
  /// The file that has this name now, if any. Names are per user and contain no '/'.
  static std::optional<SharedFile> open(const std::string& name);
  /// Names of this user's files; any of them may be gone by now.
  static std::vector<std::string> names();
  ~SharedFile() { close(); }
  SharedFile(SharedFile&& other) noexcept : file_(std::exchange(other.file_, -1)), path_(std::move(other.path_)) {}
  SharedFile& operator=(SharedFile&&) = delete;
  SharedFile(const SharedFile&) = delete;

  /// Gives the file a name, by which others can open it. False: another file has that name.
  bool publish(const std::string& name);
  /// Removes the name by which it was opened or published, unless another file has it by now. Waits at most a second.
  void remove_name() noexcept;
  const std::string& path() const { return path_; }  // empty: never named

  /// Existing mappings stay valid.
  void close() noexcept;

  int64_t size() const;
  /// Grows it to at least `bytes` and reserves the memory: without that a write to a full /dev/shm kills the process (SIGBUS). New bytes
  /// are zero. Throws out_of_memory with the requested and the free size.
  void reserve(int64_t bytes);
  /// `offset` is a multiple of kPage; the whole range is reserved.
  SharedPages map(int64_t offset, int64_t bytes) const;

 private:
  SharedFile(int file, std::string path) : file_(file), path_(std::move(path)) {}
  int file_;
  std::string path_;
};

/// Start time of this process on the clock of seconds(), which all processes of a machine share; precise to 0.01 s, never too early. Now,
/// when the system does not report it.
double process_start();

}  // namespace st::os
