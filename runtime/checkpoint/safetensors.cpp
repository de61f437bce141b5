#include "checkpoint/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <utility>

#include "base/error.h"
#include "base/os/whole_file.h"
#include "checkpoint/corrupt.h"

namespace st {

static_assert(std::endian::native == std::endian::little, "tensors are written as they lie in memory, and the format is little-endian");

namespace {

constexpr size_t kStreamPiece = 1 << 16;

std::string_view text_of(std::span<const std::byte> bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

/// Reads until `out` is full or the stream ends; returns how many bytes.
size_t read_up_to(const ReadBytes& read, std::span<std::byte> out) {
  size_t done = 0;
  while (done < out.size()) {
    const size_t got = read(out.subspan(done));
    if (got == 0) break;
    check(got <= out.size() - done, "safetensors: the read callback must return at most ", out.size() - done, " bytes, got ", got);
    done += got;
  }
  return done;
}

}  // namespace

void write_safetensors(const WriteBytes& write, std::vector<TensorRecord> tensors, Metadata metadata, const FillTensor& fill) {
  const SafetensorsHeader header = arrange(std::move(tensors), std::move(metadata));
  const std::string head = print_header(header);
  write(std::as_bytes(std::span(head)));
  for (const TensorRecord& tensor : header.tensors) {
    int64_t written = 0;
    fill(tensor, [&](std::span<const std::byte> piece) {
      written += static_cast<int64_t>(piece.size());
      check(written <= tensor.bytes(), "safetensors: ", tensor.name, " has ", tensor.bytes(), " bytes, ", written, " were written");
      if (!piece.empty()) write(piece);
    });
    check(written == tensor.bytes(), "safetensors: ", tensor.name, " has ", tensor.bytes(), " bytes, only ", written, " were written");
  }
}

void write_safetensors_file(const std::string& path, std::vector<TensorRecord> tensors, Metadata metadata, const FillTensor& fill) {
  os::write_named_file(path, [&](const WriteBytes& write) { write_safetensors(write, std::move(tensors), std::move(metadata), fill); });
}

SafetensorsFile::SafetensorsFile(std::string path) : path_(std::move(path)), file_(path_) {
  const auto all = file_.bytes();
  const auto size = static_cast<int64_t>(all.size());
  if (size < kLengthBytes) throw_corrupt(path_, "", text("has ", size, " bytes, too few for a safetensors file"), size);
  const int64_t length = header_length(all, path_);
  if (length > size - kLengthBytes) throw_corrupt(path_, "", text("gives its header ", length, " bytes, but the whole file has ", size), 0);

  header_ = parse_header(text_of(all.subspan(kLengthBytes, static_cast<size_t>(length))), path_);
  data_ = all.subspan(static_cast<size_t>(kLengthBytes + length));
  if (header_.data_bytes != static_cast<int64_t>(data_.size()))
    throw_corrupt(path_, "", text("the tensors take ", header_.data_bytes, " bytes, the file has ", data_.size(), " after its header"),
                  size);
}

std::span<const std::byte> SafetensorsFile::bytes(const TensorRecord& record) const {
  assert(record.offset >= 0 && record.offset + record.bytes() <= static_cast<int64_t>(data_.size()));
  return data_.subspan(static_cast<size_t>(record.offset), static_cast<size_t>(record.bytes()));
}

const TensorRecord& SafetensorsFile::record(std::string_view name) const {
  if (const TensorRecord* found = header_.find(name)) return *found;
  std::vector<std::string> names;
  for (const TensorRecord& tensor : header_.tensors) names.push_back(tensor.name);
  const std::string near = nearest(name, names);
  Error error(Code::not_found, text(path_, ": has no tensor ", name, near.empty() ? "" : "; did you mean ", near, near.empty() ? "" : "?"));
  error.place.file = path_;
  error.place.tensor = name;
  throw error;
}

SafetensorsStream::SafetensorsStream(ReadBytes read, std::string source) : read_(std::move(read)), source_(std::move(source)) {
  std::array<std::byte, kLengthBytes> start{};
  if (read_up_to(read_, start) != start.size()) throw_corrupt(source_, "", "ends before the header's length");
  const auto length = static_cast<size_t>(header_length(start, source_));

  // In steps, so that a wrong length does not cost memory of its size.
  std::string json;
  while (json.size() < length) {
    const size_t had = json.size(), want = std::min(kStreamPiece, length - had);
    json.resize(had + want);
    const size_t got = read_up_to(read_, std::as_writable_bytes(std::span(json).subspan(had)));
    if (got < want) throw_corrupt(source_, "", text("ends in its header, after ", had + got, " of ", length, " bytes"));
  }
  header_ = parse_header(json, source_);
}

void SafetensorsStream::read(std::span<std::byte> out) {
  check(static_cast<int64_t>(out.size()) <= header_.data_bytes - position_, "safetensors: ", source_, " has ",
        header_.data_bytes - position_, " bytes left, but ", out.size(), " were requested");
  const auto got = static_cast<int64_t>(read_up_to(read_, out));
  position_ += got;
  if (got < static_cast<int64_t>(out.size()))
    throw_corrupt(source_, "", text("ends after ", position_, " of ", header_.data_bytes, " bytes of tensors"), position_);
}

void SafetensorsStream::skip_to(int64_t offset) {
  std::vector<std::byte> piece(static_cast<size_t>(std::clamp<int64_t>(offset - position_, 0, kStreamPiece)));
  while (position_ < offset) {
    piece.resize(static_cast<size_t>(std::min<int64_t>(offset - position_, std::ssize(piece))));
    read(piece);
  }
}

}  // namespace st
