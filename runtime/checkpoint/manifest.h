// The manifest of a checkpoint: its logical tensors, where their bytes are, their checksums, and the state that is not a tensor.
// README.md in this folder describes it byte by byte.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/json.h"
#include "base/library_version.h"
#include "base/shape.h"
#include "checkpoint/safetensors_header.h"

namespace st {

constexpr int32_t kManifestVersion = 1;      // version that is written; all versions from 1 on are read
constexpr int64_t kChecksumBlock = 1 << 20;  // bytes of a piece that one CRC32C covers
constexpr std::string_view kManifestName = "manifest.json";
constexpr std::string_view kManifestStart = "{\"format\":\"scaletrain-checkpoint\",\"version\":";  // of every version
// Limits on what a hostile manifest can make us allocate.
constexpr int64_t kMaxManifestBytes = 256 << 20;  // enough for about 30 TiB of tensors
constexpr int64_t kMaxStateBytes = 1 << 20;       // of `training`, and of `recipe`
constexpr int64_t kMaxMetadataBytes = 16 << 20;

/// Decides a tensor's files: model*.safetensors, optimizer*.safetensors, tensors*.safetensors.
enum class TensorKind : int32_t { parameter, optimizer, host };
std::string_view name_of(TensorKind kind);

/// Elements [begin, end) of a tensor in row-major order, stored as one tensor of a safetensors file: a whole tensor under its own name and
/// shape, a part as "name[begin:end]" of shape [end - begin].
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
  std::vector<TensorPiece> pieces;  // in order, each element once; empty for a tensor without elements
  bool finite = true;               // holds no NaN and no infinity; true if the writer did not say
  int64_t bytes() const { return shape.elements() * bytes_of(dtype); }
};

struct ShardFile {
  std::string name;          // in the checkpoint's folder; contains no folder
  int64_t bytes = 0;         // size of the file
  int64_t header_bytes = 0;  // safetensors: the 8 bytes of length and the JSON; any other file: all of it
  uint32_t header_crc = 0;   // CRC32C of the header bytes
  bool is_safetensors() const { return name.ends_with(".safetensors"); }
};

struct Manifest {
  int32_t version = kManifestVersion;
  std::string library = std::string(library_version());  // version that wrote it
  std::string checkpoint;                                // name of the folder when it was saved: "step-00000120"
  int64_t sequence = 0;                                  // counts the saves in a run's folder; the newest has the highest
  int64_t step = 0;
  std::string time;  // UTC: "2026-11-24T10:44:11Z"
  std::string host;
  Json training;      // an object: the state of train/ that is not a tensor; {} for a host's own buffers
  Json recipe;        // an object; {} for a host's own buffers
  Metadata metadata;  // the host's
  std::vector<ShardFile> files;
  std::vector<LogicalTensor> tensors;  // by name

  const LogicalTensor* find(std::string_view name) const;  // nullptr: none
  int64_t bytes() const;                                   // of all tensors
  bool has_finite_weights() const;                         // all tensors except the optimizer's are finite
};

/// The name under which a piece is stored in its safetensors file.
std::string piece_name(const LogicalTensor& tensor, const TensorPiece& piece);
int64_t block_count(int64_t bytes);

/// The bytes of the file, ending with its own checksum (guarded_line.h). Throws invalid_argument if a limit above is exceeded or a text is
/// not UTF-8.
std::string print_manifest(const Manifest& manifest);
/// The same JSON for people and tools, without checksums.
std::string describe(const Manifest& manifest);

/// Validates untrusted text. Throws corrupt, with `file` and the tensor's name in the message and error.place, or unsupported for a newer
/// version. In the result pieces tile their tensors and have a checksum for each block, names are unique and contain no folder, and sizes
/// fit 64 bits. Uses memory of at most a small multiple of the text's.
Manifest parse_manifest(std::string_view text, std::string_view file);

}  // namespace st
