// Token sources: text, whose bytes are the tokens, or a file of token ids (format in README.md), which is mapped and may be larger than
// memory. A source is a sequence of ids at positions [0, size()); windows, order and batches are built on top of it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/os/files.h"

namespace st {

class TokenSource {
 public:
  /// `path` is a text file in UTF-8, a folder of them, or a token file (known by its first bytes, not by its name).
  ///
  /// A folder is read recursively. Its files are joined in the order of their relative paths, compared byte by byte, with one newline
  /// between them. Skipped: names that begin with a dot, folders named `build`, empty files, and files that are not text (not UTF-8, or
  /// with a NUL byte). A single file must be UTF-8; the error says where it is not.
  ///
  /// Throws not_found, io (unreadable), invalid_argument (empty, not text) or corrupt (a token file with a wrong header), with the file.
  explicit TokenSource(const std::string& path);
  TokenSource(const TokenSource&) = delete;  // it holds views into itself
  TokenSource& operator=(const TokenSource&) = delete;

  int64_t size() const { return size_; }
  /// All ids are below it: 256 for text, else from the token file.
  int64_t vocabulary() const { return vocabulary_; }
  const std::string& path() const { return path_; }
  /// Number of files read.
  int64_t files() const { return static_cast<int64_t>(files_.size()); }

  /// Copies the ids at [first, first + out.size()). Throws corrupt, with file, position and id, for an id outside the header's vocabulary.
  /// Safe to call from several threads.
  void read(int64_t first, std::span<int32_t> out) const;

 private:
  struct SourceFile {
    int64_t first;
    std::string path;
  };

  void open_text(const std::string& path);
  void open_folder(const std::string& path);
  void open_token_file(const std::string& path);
  /// The file that holds the token at `position`, and the position in it.
  std::string place_of(int64_t position) const;

  std::string path_;
  std::optional<os::MappedFile> mapped_;
  std::string joined_;               // contents of a folder
  std::span<const std::byte> data_;  // the tokens: in the mapped file or in joined_
  std::vector<SourceFile> files_;
  int64_t size_ = 0, vocabulary_ = 256, width_ = 1;
};

/// Writes a token file: two bytes per id when `vocabulary` is at most 65536, else four. Replaces `path` atomically.
void write_tokens(const std::string& path, int64_t vocabulary, std::span<const int32_t> tokens);

}  // namespace st
