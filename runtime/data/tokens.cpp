#include "data/tokens.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/error.h"
#include "base/os/whole_file.h"
#include "base/utf8.h"
#include "data/token_header.h"

namespace st {
namespace {

[[noreturn]] void fail_in(const std::string& file, Code code, std::string message, int64_t offset = -1) {
  Error error(code, std::move(message));
  error.place.file = file;
  error.place.offset = offset;
  throw error;
}

std::string_view as_text(std::span<const std::byte> bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

/// All files except hidden ones and those in folders named `build`.
std::vector<std::string> files_in(const std::string& folder) {
  return os::files_below(folder,
                         [](std::string_view name, bool is_folder) { return !name.starts_with('.') && !(is_folder && name == "build"); });
}

bool is_text(std::string_view content) {
  return content.find('\0') == std::string_view::npos && utf8_valid_until(content) == content.size();
}

int32_t id_at(const std::byte* bytes, int64_t width) {
  uint32_t id = 0;
  for (int64_t i = 0; i < width; ++i) id |= static_cast<uint32_t>(bytes[i]) << (8 * i);
  // An id above int32 becomes one that no vocabulary contains.
  return static_cast<int32_t>(std::min<uint32_t>(id, std::numeric_limits<int32_t>::max()));
}

}  // namespace

TokenSource::TokenSource(const std::string& path) : path_(path) {
  const os::PathKind kind = os::kind_of(path);
  if (kind == os::PathKind::none) fail_in(path, Code::not_found, text("data: ", path, " does not exist"));
  if (kind == os::PathKind::folder) {
    open_folder(path);
    return;
  }
  // Opening a pipe would wait for its writer, and neither it nor a device can be mapped.
  if (kind == os::PathKind::other) fail_in(path, Code::invalid_argument, text("data: ", path, " is neither a file nor a folder"));
  mapped_.emplace(path);
  if (mapped_->bytes().empty()) fail_in(path, Code::invalid_argument, text("data: ", path, " is empty"));
  if (TokenHeader::is_at(mapped_->bytes())) {
    open_token_file(path);
  } else {
    open_text(path);
  }
}

void TokenSource::open_text(const std::string& path) {
  data_ = mapped_->bytes();
  if (path.ends_with(".bin"))
    fail_in(path, Code::invalid_argument,
            text("data: ", path, " is not a token file: it does not start with \"STTOKENS\" (the format is in runtime/data/README.md)"), 0);
  if (const size_t wrong = utf8_valid_until(as_text(data_)); wrong < data_.size())
    fail_in(path, Code::invalid_argument,
            text("data: ", path, " is not UTF-8 text: byte ", wrong, " of ", data_.size(), " is not part of a valid character"),
            static_cast<int64_t>(wrong));
  size_ = static_cast<int64_t>(data_.size());
  files_.push_back({0, path});
}

void TokenSource::open_folder(const std::string& path) {
  int64_t skipped = 0;
  for (const auto& name : files_in(path)) {
    const std::string file = path.ends_with('/') ? path + name : text(path, "/", name);
    const os::MappedFile mapped(file);
    const std::string_view content = as_text(mapped.bytes());
    if (content.empty() || !is_text(content)) {
      ++skipped;
      continue;
    }
    if (!joined_.empty()) joined_ += '\n';
    files_.push_back({static_cast<int64_t>(joined_.size()), file});
    joined_ += content;
  }
  if (joined_.empty())
    fail_in(path, Code::invalid_argument,
            text("data: folder ", path, " holds no text (", skipped, " files are empty or not UTF-8 text; hidden files are skipped)"));
  data_ = std::as_bytes(std::span(joined_));
  size_ = static_cast<int64_t>(joined_.size());
}

void TokenSource::open_token_file(const std::string& path) {
  const TokenHeader header = TokenHeader::read(mapped_->bytes(), path);
  data_ = mapped_->bytes().subspan(TokenHeader::kBytes);
  size_ = header.count;
  vocabulary_ = header.vocabulary;
  width_ = header.width;
  files_.push_back({0, path});
}

std::string TokenSource::place_of(int64_t position) const {
  const auto after = std::ranges::upper_bound(files_, position, {}, &SourceFile::first);
  const SourceFile& file = *(after - 1);
  return text(file.path, ", position ", position - file.first);
}

void TokenSource::read(int64_t first, std::span<int32_t> out) const {
  check(first >= 0 && static_cast<int64_t>(out.size()) <= size_ - first, "data: positions [", first, ", ", first, " + ", out.size(),
        ") are outside the ", size_, " tokens of ", path_);
  const std::byte* from = data_.data() + first * width_;
  if (width_ == 1) {
    std::ranges::transform(std::span(from, out.size()), out.begin(), [](std::byte byte) { return std::to_integer<int32_t>(byte); });
    return;
  }
  const auto limit = static_cast<int32_t>(std::min<int64_t>(vocabulary_, std::numeric_limits<int32_t>::max()));
  for (size_t i = 0; i < out.size(); ++i, from += width_) {
    out[i] = id_at(from, width_);
    if (out[i] < limit) continue;
    const int64_t position = first + static_cast<int64_t>(i);
    fail_in(
        path_, Code::corrupt,
        text("data: ", path_, ", position ", position, ": id ", out[i], " is outside the vocabulary of ", vocabulary_, " in its header"),
        TokenHeader::kBytes + position * width_);
  }
}

void write_tokens(const std::string& path, int64_t vocabulary, std::span<const int32_t> tokens) {
  TokenHeader header;
  header.width = vocabulary <= 65536 ? 2 : 4;
  header.vocabulary = vocabulary;
  header.count = static_cast<int64_t>(tokens.size());
  check(vocabulary >= 1 && vocabulary <= TokenHeader::kMaxVocabulary, "tokens: the vocabulary must be 1 to ", TokenHeader::kMaxVocabulary,
        ", got ", vocabulary);
  for (size_t i = 0; i < tokens.size(); ++i)
    check(tokens[i] >= 0 && tokens[i] < vocabulary, "tokens: id ", tokens[i], " at position ", i, " is outside the vocabulary of ",
          vocabulary);
  os::write_named_file(path, [&](const auto& write) {
    write(header.bytes());
    std::array<std::byte, 1 << 14> buffer;
    const auto width = static_cast<size_t>(header.width);
    for (size_t at = 0; at < tokens.size();) {
      const size_t n = std::min(buffer.size() / width, tokens.size() - at);
      for (size_t i = 0; i < n * width; ++i)
        buffer[i] = static_cast<std::byte>(static_cast<uint32_t>(tokens[at + i / width]) >> (8 * (i % width)));
      write(std::span(buffer).first(n * width));
      at += n;
    }
  });
}

}  // namespace st
