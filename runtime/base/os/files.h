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
/// What stands at a path, links followed. Throws io with path and reason when that cannot be told.
PathKind kind_of(const std::string& path);

/// The regular files below a folder, named relative to it and sorted: links to files too, folders behind links not. What `takes` refuses is
/// neither listed nor entered. Throws io with path and reason.
std::vector<std::string> files_below(const std::string& folder, const std::function<bool(std::string_view name, bool is_folder)>& takes);

/// What a short file of the system's says (/proc, /sys); empty when it cannot be read.
std::string short_file(const std::string& path);

/// A whole file of at most `most` bytes, read: for files that someone else may be writing. Throws io with path and reason (not_found when
/// it is not there).
std::string read_file(const std::string& path, int64_t most);

/// Makes a folder and those that it stands in; fine where they are there. Throws io with path and reason.
void make_folders(const std::string& path);

/// A whole file mapped read-only. Throws io with path and reason (not_found when it is not there).
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
