// Reads and writes weights as safetensors, in files and streams.
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

/// Writes all bytes or throws.
using WriteBytes = std::function<void(std::span<const std::byte>)>;
/// Reads at most as many bytes as the span has; returns how many, 0 at the end.
using ReadBytes = std::function<size_t(std::span<std::byte>)>;
/// Writes one tensor's bytes (row-major, little-endian) in any number of calls of `write`, exactly record.bytes() in total.
using FillTensor = std::function<void(const TensorRecord& record, const WriteBytes& write)>;

/// Streams the tensors to `write`; calls `fill` for each, in the order of the file (see arrange). Equal tensors and metadata give equal
/// bytes. Throws invalid_argument if `fill` writes more or fewer bytes than the tensor has.
void write_safetensors(const WriteBytes& write, std::vector<TensorRecord> tensors, Metadata metadata, const FillTensor& fill);

/// The same into a file: after a kill or on a full disk there is either the old file or the new one, never a partial one.
void write_safetensors_file(const std::string& path, std::vector<TensorRecord> tensors, Metadata metadata, const FillTensor& fill);

/// A file mapped into memory with its header checked (throws corrupt, naming file and tensor). Spans are valid as long as this object.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(std::string path);

  const std::string& path() const { return path_; }
  const SafetensorsHeader& header() const { return header_; }
  /// Offset of the data in the file.
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

/// The same from a stream, read front to back, so that no tensor is in memory twice.
class SafetensorsStream {
 public:
  /// Reads the header. `source` names the stream in errors.
  SafetensorsStream(ReadBytes read, std::string source);

  const SafetensorsHeader& header() const { return header_; }
  /// Reads the next bytes of the data until `out` is full. Throws corrupt if the stream ends before.
  void read(std::span<std::byte> out);
  /// Skips the data up to `offset`: that of a tensor, or header().data_bytes.
  void skip_to(int64_t offset);

 private:
  ReadBytes read_;
  std::string source_;
  SafetensorsHeader header_;
  int64_t position_ = 0;  // in the data
};

}  // namespace st
