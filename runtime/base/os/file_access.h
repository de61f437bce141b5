// Files by offset, folders, and who may touch them: what a checkpoint is written and read with. Errors name path, offset and reason:
// Code::io, and not_found where what is to be read, listed or held is not there. Whoever writes gets io for that too: it was there before.
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

/// A file that is written at any offset, by one or several writers. Nothing is durable before sync().
class OutputFile {
 public:
  enum class Open { fresh /* must not be there */, shared /* made if need be; others write other bytes of it */ };
  OutputFile(std::string path, Open how);
  ~OutputFile();  // closes; an error of that is lost, so close() before it matters
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write_at(int64_t offset, std::span<const std::byte> bytes);
  /// From here on past the page cache: the system copies nothing and keeps nothing. Offsets, sizes and addresses are then multiples of
  /// kDirectAlign, until go_through_cache(). False: the file system cannot.
  bool go_direct();
  void go_through_cache();
  static constexpr int64_t kDirectAlign = 4096;
  /// Asks the system to begin writing this range to the disk, so that a checkpoint of many gigabytes does not pile up in memory until
  /// sync().
  void start_writeback(int64_t offset, int64_t bytes);
  /// Waits for what it began, and asks it not to keep the range in memory, where it would push out what others have there. Neither makes
  /// anything durable: that is sync()'s.
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

/// A file that is read at any offset, from any threads at once. Not mapped: of a mapped file that is cut short, or that its disk cannot
/// read, the process would die (SIGBUS); here that is an error.
class InputFile {
 public:
  explicit InputFile(std::string path);  // a regular file
  ~InputFile();
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;
  InputFile(const InputFile&) = delete;

  int64_t size() const { return size_; }  // when it was opened
  /// All of `out`, or throws: corrupt where the file ends before.
  void read_at(int64_t offset, std::span<std::byte> out) const;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int file_;
  int64_t size_ = 0;
};

/// An advisory lock (flock) on a file that is there; ends with this object or the process, whatever children it forked. Never waits: none
/// where somebody holds it.
class FileHold {
 public:
  enum class Kind { shared, exclusive };
  /// Throws not_found where the file is not there (any more: it is looked at again once it is held).
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
  PathKind kind = PathKind::none;  // links are `other`: nothing of ours is one
};
/// What stands in a folder, sorted by name; without "." and "..".
std::vector<FolderEntry> list_folder(const std::string& folder);

/// What stands at a path where a file or a folder belongs, in words: "a pipe", "a link to old, which is not there". Empty where nothing
/// does, or what belongs there: a folder also behind a link, a file itself.
std::string stranger_at(const std::string& path, PathKind belongs);
/// Throws invalid_argument with its words where there is one.
void require_no_stranger(const std::string& path, PathKind belongs);

/// False: it is there already.
bool make_folder(const std::string& path);
void sync_folder(const std::string& folder);
void rename_file(const std::string& from, const std::string& to);
/// False: it was not there.
bool remove_file(const std::string& path);
/// A folder and all in it, links not followed. False: it was not there.
bool remove_folder(const std::string& path);
/// Bytes that this user can still write there.
int64_t free_space(const std::string& folder);

}  // namespace st::os
