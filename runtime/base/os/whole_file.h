// Files that are written as a whole: whoever reads one finds all of the old content or all of the new.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

namespace st::os {

using WriteFileBytes = std::function<void(std::span<const std::byte>)>;
/// Gets a writer, which throws io with path, offset and reason.
using FillFile = std::function<void(const WriteFileBytes& write)>;

/// Writes a file of our own naming: temporary name, fsync, rename, fsync of the folder. A kill or a full disk leaves the old file or the
/// new one. A link at `path` is replaced itself. Throws invalid_argument where `path` is no regular file: the rename would make one of a
/// device.
void write_file_atomically(const std::string& path, const FillFile& fill);

/// The same for a file that the user named, which is reached as open() reaches it: links are followed, a file that was there keeps its mode
/// and, where that is permitted, its owner. A device, a pipe or an open descriptor (/dev/stdout) is written directly, and appended to.
void write_named_file(const std::string& path, const FillFile& fill);

}  // namespace st::os
