// Files and folders by path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace st::os {

enum class PathKind : int32_t { none, file, folder, other };
/// Kind of the object at a path, links followed. Throws io with path and reason when it cannot be determined.
PathKind kind_of(const std::string& path);

/// The regular files below a folder, by relative name, sorted. Includes links to files; does not enter links to folders. Entries that
/// `takes` rejects are neither listed nor entered. Throws io with path and reason.
std::vector<std::string> files_below(const std::string& folder, const std::function<bool(std::string_view name, bool is_folder)>& takes);

/// Contents of a short system file (/proc, /sys); empty when it cannot be read.
std::string short_file(const std::string& path);

/// Reads a whole file of at most `most` bytes that another process may be writing. Throws io with path and reason (not_found when it
/// does not exist).
std::string read_file(const std::string& path, int64_t most);

/// Creates a folder and its missing parents. Throws io with path and reason.
void make_folders(const std::string& path);

/// A whole file mapped read-only. Throws io with path and reason (not_found when it does not exist).
class MappedFile {
 public:
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  MappedFile(const MappedFile&) = delete;
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace st::os
