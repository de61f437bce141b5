// The header of a safetensors file (https://huggingface.co/docs/safetensors): 8 bytes little-endian length N, N bytes of JSON, then the
// data.
//   {"__metadata__": {"key": "text"}, "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}}
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/shape.h"

namespace st {

struct TensorRecord {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  int64_t offset = 0;  // from the start of the data; set by arrange()
  int64_t bytes() const { return shape.elements() * bytes_of(dtype); }
};

/// A tensor that the format allows and we do not support: another dtype (I8, F8_E4M3, ...) or more than kMaxDims dimensions. It is counted
/// and listed; its bytes are skipped.
struct ForeignTensor {
  std::string name, dtype;  // "I8"
  std::vector<int64_t> shape;
  int64_t offset = 0, bytes = 0;
};

using Metadata = std::map<std::string, std::string>;

struct SafetensorsHeader {
  std::vector<TensorRecord> tensors;   // in the order of the data; foreign ones may be in between
  std::vector<ForeignTensor> foreign;  // in the order of the data
  Metadata metadata;
  int64_t data_bytes = 0;  // of tensors and foreign together, which tile the data without gaps

  const TensorRecord* find(std::string_view name) const;  // nullptr if there is none
};

std::string_view safetensors_name(DType dtype);                             // "F32", ...
std::optional<DType> dtype_of_safetensors(std::string_view name) noexcept;  // nullopt if not supported

constexpr int64_t kLengthBytes = 8;               // of the little-endian header length before the header
constexpr int64_t kMaxHeaderBytes = 100'000'000;  // the format's own limit

/// Orders tensors by element size, widest first, then by name, and lays them out without gaps: each is aligned to its element size, and
/// equal tensors make equal files. Throws invalid_argument for a duplicate name, "__metadata__" as a name, or a size beyond int64.
SafetensorsHeader arrange(std::vector<TensorRecord> tensors, Metadata metadata);

/// The 8 bytes of length and the JSON, padded with spaces so that the data starts at a multiple of 8. Throws invalid_argument if a text is
/// not UTF-8.
std::string print_header(const SafetensorsHeader& header);

/// Decodes the first kLengthBytes of a file. Throws corrupt if the length is beyond the format's limit.
int64_t header_length(std::span<const std::byte> start, std::string_view file);

/// Validates untrusted text. Accepts only JSON of the form above with dtypes of the format, sizes that match their offsets, and offsets
/// that tile the data without overlap or gap; throws corrupt, with `file` and the tensor's name in the message and error.place. Ignores
/// unknown keys of a tensor. Accepts what the package safetensors 0.8.0 does, except where the format's text is stricter (README.md).
SafetensorsHeader parse_header(std::string_view json, std::string_view file);

}  // namespace st
