// Files by offset, folders and locks, for checkpoints. Errors name path, offset and reason. Their code is io, or not_found when a file to
// read, list or lock does not exist; a writer gets io for that too, since the file existed before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/os/files.h"
#include "base/os/machine.h"

namespace st::os {

/// A file written at any offset, by one or several writers. Nothing is durable before sync().
class OutputFile {
 public:
  enum class Open { fresh /* must not exist */, shared /* created if needed; other writers write other bytes */ };
  OutputFile(std::string path, Open how);
  ~OutputFile();  // closes and ignores errors: call close() to see them
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write_at(int64_t offset, std::span<const std::byte> bytes);
  /// Bypasses the page cache until go_through_cache(). Offsets, sizes and addresses must then be multiples of kDirectAlign. False: the file
  /// system cannot.
  bool go_direct();
  void go_through_cache();
  static constexpr int64_t kDirectAlign = 4096;
  /// Asks the system to start writing this range to disk, so that a large checkpoint does not pile up in memory until sync().
  void start_writeback(int64_t offset, int64_t bytes);
  /// Waits for the started writes and asks the system to drop the range from the page cache. Neither call makes anything durable; sync()
  /// does.
  void finish_writeback(int64_t offset, int64_t bytes);
  void sync();
  void close();
  const std::string& path() const { return path_; }

 private:
  void write_back(int64_t offset, int64_t bytes, unsigned how);

  std::string path_;
  int file_;
  bool is_direct_ = false;
};

/// A file read at any offset, from any number of threads. Not mapped: reading a mapped file that was truncated or that the disk cannot
/// read kills the process (SIGBUS); here it is an error.
class InputFile {
 public:
  explicit InputFile(std::string path);  // a regular file
  ~InputFile();
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;
  InputFile(const InputFile&) = delete;

  int64_t size() const { return size_; }  // at opening
  /// Fills `out` or throws: corrupt when the file is too short.
  void read_at(int64_t offset, std::span<std::byte> out) const;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int file_;
  int64_t size_ = 0;
};

/// An advisory lock (flock) on an existing file; released with this object or the process, even if forked children live on. Never waits:
/// nullopt when another process holds it.
class FileHold {
 public:
  enum class Kind { shared, exclusive };
  /// Throws not_found when the file does not exist; checked again once locked.
  static std::optional<FileHold> take(const std::string& path, Kind kind);
  ~FileHold();
  FileHold(FileHold&& other) noexcept : file_(std::exchange(other.file_, -1)), process_(other.process_) {}
  FileHold& operator=(FileHold&&) = delete;
  FileHold(const FileHold&) = delete;

 private:
  explicit FileHold(int file) : file_(file) {}
  int file_;
  int64_t process_ = process_id();
};

struct FolderEntry {
  std::string name;
  PathKind kind = PathKind::none;  // links are `other`: we create none
};
/// Entries of a folder, sorted by name; without "." and "..".
std::vector<FolderEntry> list_folder(const std::string& folder);

/// Describes the object at a path where `belongs` is expected: "a pipe", "a broken link to old". Empty when the path is free
/// or holds what is expected: a folder may be a link, a file may not.
std::string wrong_kind_at(const std::string& path, PathKind belongs);
/// Throws invalid_argument with that description.
void require_kind(const std::string& path, PathKind belongs);

/// False: it exists already.
bool make_folder(const std::string& path);
void sync_folder(const std::string& folder);
void rename_file(const std::string& from, const std::string& to);
/// False: it did not exist.
bool remove_file(const std::string& path);
/// Removes a folder and its contents; does not follow links. False: it did not exist.
bool remove_folder(const std::string& path);
/// Bytes that this user can still write in `folder`.
int64_t free_space(const std::string& folder);

}  // namespace st::os
