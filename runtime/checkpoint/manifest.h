// The manifest of a checkpoint: which logical tensors it holds, where their bytes lie, their checksums, and the state that is no tensor.
// README.md of this folder tells it byte by byte.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/json.h"
#include "base/shape.h"
#include "checkpoint/safetensors_header.h"

namespace st {

constexpr int32_t kManifestVersion = 1;      // of what is written; all from 1 on are read
constexpr int64_t kChecksumBlock = 1 << 20;  // bytes of a piece that one CRC32C guards
constexpr std::string_view kManifestName = "manifest.json";
constexpr std::string_view kManifestStart = "{\"format\":\"scaletrain-checkpoint\",\"version\":";  // of every version
// A hostile manifest must not cost more memory than a large one may.
constexpr int64_t kMaxManifestBytes = 256 << 20;  // some 30 TiB of tensors
constexpr int64_t kMaxStateBytes = 1 << 20;       // of `training`, and of `recipe`
constexpr int64_t kMaxMetadataBytes = 16 << 20;

/// Which files a tensor lies in: model*.safetensors, optimizer*.safetensors, tensors*.safetensors.
enum class TensorKind : int32_t { parameter, optimizer, host };
std::string_view name_of(TensorKind kind);

/// Elements [begin, end) of a tensor in row-major order, as one tensor of a safetensors file: all of it under its own name and shape, or a
/// part as "name[begin:end]" of shape [end - begin].
struct TensorPiece {
  int32_t file = 0;  // index in Manifest::files
  int64_t begin = 0, end = 0;
  std::vector<uint32_t> blocks;  // CRC32C of each kChecksumBlock bytes; the last one may be shorter
};

struct LogicalTensor {
  std::string name;
  TensorKind kind = TensorKind::parameter;
  DType dtype = DType::f32;
  Shape shape;
  std::vector<TensorPiece> pieces;  // in order, each element once; none for a tensor without elements
  bool finite = true;               // no NaN and no infinity in it; true of a writer that did not say
  int64_t bytes() const { return shape.elements() * bytes_of(dtype); }
};

struct ShardFile {
  std::string name;          // in the checkpoint's folder; no folders in it
  int64_t bytes = 0;         // all of it
  int64_t header_bytes = 0;  // of a safetensors file the 8 bytes of length and the JSON behind them; of any other file all of it
  uint32_t header_crc = 0;   // CRC32C of those
  bool is_safetensors() const { return name.ends_with(".safetensors"); }
};

std::string_view library_version();  // "0.1.0"

struct Manifest {
  int32_t version = kManifestVersion;
  std::string library = std::string(library_version());  // that wrote it
  std::string checkpoint;                                // the folder's name when it was saved: "step-00000120"
  int64_t sequence = 0;                                  // counts the saves of a run's folder; the newest has the highest
  int64_t step = 0;
  std::string time;  // UTC: "2026-11-24T10:44:11Z"
  std::string host;
  Json training;      // an object: what train/ keeps beside tensors; {} of a host's own buffers
  Json recipe;        // an object; {} likewise
  Metadata metadata;  // the host's
  std::vector<ShardFile> files;
  std::vector<LogicalTensor> tensors;  // by name

  const LogicalTensor* find(std::string_view name) const;  // nullptr: none
  int64_t bytes() const;                                   // of all tensors
  bool has_finite_weights() const;                         // of all tensors but the optimizer's
};

/// The name of the safetensors tensor that a piece is.
std::string piece_name(const LogicalTensor& tensor, const TensorPiece& piece);
int64_t block_count(int64_t bytes);

/// The file's bytes, its own checksum at their end (guarded_line.h). Throws invalid_argument: more than the limits above, text that is not
/// UTF-8.
std::string print_manifest(const Manifest& manifest);
/// The same JSON for people and tools, without checksums.
std::string describe(const Manifest& manifest);

/// Trusts nothing: throws corrupt, with `file` and the tensor's name in message and place, unsupported for a newer version. What it takes
/// is whole: pieces tile their tensors and have a checksum for each block, names are unique and name no folder, sizes fit 64 bits. Memory
/// stays within a small multiple of the text's.
Manifest parse_manifest(std::string_view text, std::string_view file);

}  // namespace st
