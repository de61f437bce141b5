// Weights on disk and through sockets, as safetensors: every tool of the field reads it.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/os/files.h"
#include "checkpoint/safetensors_header.h"

namespace st {

/// Takes all bytes or throws.
using WriteBytes = std::function<void(std::span<const std::byte>)>;
/// Gives at most so many bytes and says how many; 0 is the end.
using ReadBytes = std::function<size_t(std::span<std::byte>)>;
/// Writes one tensor's bytes (row-major, little-endian), in as many pieces as it likes, exactly record.bytes() in all.
using FillTensor = std::function<void(const TensorRecord& record, const WriteBytes& write)>;

/// Streams the tensors to `write`; `fill` is called for each in the order of the file (see arrange). The same tensors and metadata give
/// the same bytes. Throws invalid_argument when `fill` wrote more or less than the tensor has.
void write_safetensors(const WriteBytes& write, std::vector<TensorRecord> tensors, Metadata metadata, const FillTensor& fill);

/// The same into a file: after a kill or a full disk there is the old file or the new one, never a part.
void write_safetensors_file(const std::string& path, std::vector<TensorRecord> tensors, Metadata metadata, const FillTensor& fill);

/// A file mapped into memory, its header checked (corrupt names file and tensor). Spans stay valid as long as this object.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(std::string path);

  const std::string& path() const { return path_; }
  const SafetensorsHeader& header() const { return header_; }
  /// Where the data begin in the file.
  int64_t data_begin() const { return static_cast<int64_t>(file_.bytes().size()) - header_.data_bytes; }
  std::span<const std::byte> bytes(const TensorRecord& record) const;
  /// Throws not_found with the file and the nearest name.
  const TensorRecord& record(std::string_view name) const;

 private:
  std::string path_;
  os::MappedFile file_;
  SafetensorsHeader header_;
  std::span<const std::byte> data_;
};

/// The same from a stream, front to back, so that nothing need be held twice.
class SafetensorsStream {
 public:
  /// Reads the header. `source` names the stream in errors.
  SafetensorsStream(ReadBytes read, std::string source);

  const SafetensorsHeader& header() const { return header_; }
  /// The next bytes of the data, all of `out`. Throws corrupt when the stream ends before.
  void read(std::span<std::byte> out);
  /// Passes over the data before `offset`, a tensor's or header().data_bytes.
  void skip_to(int64_t offset);

 private:
  ReadBytes read_;
  std::string source_;
  SafetensorsHeader header_;
  int64_t position_ = 0;  // in the data
};

}  // namespace st
