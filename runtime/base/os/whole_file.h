// Files written as a whole: a reader sees all of the old content or all of the new.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

namespace st::os {

using WriteFileBytes = std::function<void(std::span<const std::byte>)>;
/// Receives a writer, which throws io with path, offset and reason.
using FillFile = std::function<void(const WriteFileBytes& write)>;

/// Writes a file whose path the library chose: temporary name, fsync, rename, fsync of the folder. After a kill or on a full disk the file
/// is the old or the new one. A link at `path` is itself replaced. Throws invalid_argument when `path` is not a regular file, because the
/// rename would replace a device by a file.
void write_file_atomically(const std::string& path, const FillFile& fill);

/// The same for a path that the user chose, opened as open() would: links are followed; an existing file keeps its mode and, where
/// permitted, its owner. A device, pipe or open descriptor (/dev/stdout) is written directly, in append mode.
void write_named_file(const std::string& path, const FillFile& fill);

}  // namespace st::os
