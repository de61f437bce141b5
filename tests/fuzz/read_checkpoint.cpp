// Hostile checkpoints: safetensors headers and streams, maps of shards, manifests, `latest`, and whole folders with matching checksums, so
// that the code after the checksum test is reached. The only permitted result is an error with code corrupt. With clang and
// ST_SANITIZE=...,fuzzer-no-link it is a libFuzzer program; otherwise it uses mutation_loop.cpp.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/os/machine.h"
#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/guarded_line.h"
#include "checkpoint/run_folder.h"
#include "checkpoint/weight_files.h"
#include "finding.h"

namespace {

using namespace st;

/// Runs read(); returns whether it succeeded. The only permitted errors are those of a bad file, and `other`.
template <class Read>
bool taken(const Read& read, Code other = Code::unsupported) {
  try {
    read();
    return true;
  } catch (const Error& error) {
    if (error.code() != Code::corrupt && error.code() != Code::unsupported && error.code() != other)
      found(text("refused as ", static_cast<int>(error.code()), ": ", error.message()));
    if (error.message().empty() || error.place.file.empty()) found("an error that does not say where: " + error.message());
    return false;
  }
}

std::string_view words(std::span<const uint8_t> bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

void read_header(std::string_view json) {
  SafetensorsHeader header;
  if (!taken([&] { header = parse_header(json, "a header"); })) return;
  std::vector<std::pair<int64_t, int64_t>> places;  // offset, bytes
  for (const TensorRecord& tensor : header.tensors) places.emplace_back(tensor.offset, tensor.bytes());
  for (const ForeignTensor& tensor : header.foreign) places.emplace_back(tensor.offset, tensor.bytes);
  std::ranges::sort(places);
  int64_t next = 0;
  for (const auto& [offset, size] : places) {
    if (offset != next || size < 0) found("tensors that do not tile their file");
    next += size;
  }
  if (next != header.data_bytes) found("data of another size");
}

void read_stream(std::span<const uint8_t> bytes) {
  taken([&] {
    SafetensorsStream stream(
        [&](std::span<std::byte> out) {
          const size_t size = std::min({out.size(), bytes.size(), size_t{100}});
          std::memcpy(out.data(), bytes.data(), size);
          bytes = bytes.subspan(size);
          return size;
        },
        "a stream");
    stream.skip_to(stream.header().data_bytes);
  });
}

void read_manifest(std::string_view text) {
  Manifest manifest;
  if (!taken([&] { manifest = parse_manifest(text, "a manifest"); })) return;
  if (manifest.bytes() < 0) found("a size past 64 bits");
  const std::string printed = print_manifest(manifest);
  if (print_manifest(parse_manifest(printed, "a manifest")) != printed) found("a manifest that does not read back as it was");
}

/// A folder with one shard of arbitrary bytes, and a manifest that matches it as far as possible, or nearly.
class HostileFolder {
 public:
  HostileFolder() : folder_(std::filesystem::temp_directory_path() / st::text("st_read_checkpoint_", os::process_id())) {
    std::filesystem::create_directories(folder_);
  }
  ~HostileFolder() { std::filesystem::remove_all(folder_); }
  HostileFolder(const HostileFolder&) = delete;
  HostileFolder& operator=(const HostileFolder&) = delete;

  /// The first bytes determine the changes to the manifest.
  void read(std::span<const uint8_t> bytes) {
    const auto changes = bytes.first(std::min<size_t>(bytes.size(), 8)), shard = bytes.subspan(changes.size());
    put("model.safetensors", words(shard));
    Manifest manifest = manifest_of(std::as_bytes(shard));
    const bool fits = !manifest.tensors.empty();
    const bool changed = change(manifest, changes);
    put("manifest.json", print_manifest(manifest));

    Workers workers(1);
    taken([&] {
      const CheckpointReader reader(folder_);
      const bool whole = reader.verify(workers).empty();
      if (!whole && !changed) found("blocks of a checkpoint as it was written are refused");
      for (const LogicalTensor& tensor : reader.manifest().tensors) read_parts(reader, tensor);
      reader.digest();
    });
    if (fits && !changed && !taken([&] { const CheckpointReader reader(folder_); })) found("a checkpoint as it was written is refused");
  }

  /// A line that maps tensors to shards, and one shard.
  void read_shards(std::string_view bytes) const {
    const size_t line = std::min(bytes.find('\n'), bytes.size());
    put("map.json", bytes.substr(0, line));
    put("one.safetensors", bytes.substr(std::min(line + 1, bytes.size())));
    const auto read = [&] {
      const WeightFiles weights((folder_ / "map.json").string());
      for (const SafetensorsFile& file : weights.files())
        for (const TensorRecord& tensor : file.header().tensors)
          if (std::ssize(file.bytes(tensor)) != tensor.bytes()) found("a tensor of another size");
    };
    taken(read, Code::not_found);
  }

 private:
  void put(const char* name, std::string_view content) const {
    const auto path = folder_ / name;
    std::ofstream(path,
                  std::ios::binary | (std::filesystem::exists(path) ? std::ios::in : std::ios::out))  // overwrites the old file: faster
        .write(content.data(), static_cast<std::streamsize>(content.size()));
    std::filesystem::resize_file(path, content.size());
  }

  /// The manifest that the writer would make for this shard; without tensors if it is not a safetensors file.
  static Manifest manifest_of(std::span<const std::byte> shard) {
    Manifest manifest;
    uint64_t length = 0;
    std::memcpy(&length, shard.data(), std::min<size_t>(shard.size(), 8));
    const auto header = static_cast<int64_t>(std::min<uint64_t>(length, shard.size()) + 8);
    const auto guarded = shard.first(std::min(shard.size(), static_cast<size_t>(header)));
    manifest.files = {{"model.safetensors", std::ssize(shard), std::max<int64_t>(std::ssize(guarded), 8), crc32c(guarded)}};
    manifest.files[0].bytes = std::max(manifest.files[0].bytes, manifest.files[0].header_bytes);
    try {
      const std::string_view json(reinterpret_cast<const char*>(guarded.data()) + 8, guarded.size() < 8 ? 0 : guarded.size() - 8);
      const SafetensorsHeader parsed = parse_header(json, "a shard");
      if (static_cast<int64_t>(length) + 8 != header || parsed.data_bytes != std::ssize(shard) - header) return manifest;
      for (const TensorRecord& t : parsed.tensors) {
        LogicalTensor& tensor = manifest.tensors.emplace_back(LogicalTensor{t.name, TensorKind::parameter, t.dtype, t.shape, {}});
        if (t.bytes() == 0) continue;
        TensorPiece& piece = tensor.pieces.emplace_back(TensorPiece{0, 0, t.shape.elements(), {}});
        const auto data = shard.subspan(static_cast<size_t>(header + t.offset), static_cast<size_t>(t.bytes()));
        for (size_t at = 0; at < data.size(); at += kChecksumBlock)
          piece.blocks.push_back(crc32c(data.subspan(at, std::min<size_t>(kChecksumBlock, data.size() - at))));
      }
    } catch (const Error&) {
      return manifest;
    }
    std::ranges::sort(manifest.tensors, {}, &LogicalTensor::name);
    return manifest;
  }

  /// Returns whether anything was changed.
  static bool change(Manifest& manifest, std::span<const uint8_t> how) {
    if (manifest.tensors.empty() || how.size() < 4 || how[0] % 2 == 0) return false;
    LogicalTensor& tensor = manifest.tensors[how[1] % manifest.tensors.size()];
    const std::string before = print_manifest(manifest);
    const int64_t by = how[3] - 128;
    switch (how[2] % 8) {
      case 0:
        if (tensor.shape.rank() > 0) tensor.shape[0] = std::max<int64_t>(0, tensor.shape[0] + by);
        break;
      case 1:
        tensor.dtype = static_cast<DType>(1 + how[3] % 8);
        break;
      case 2:
        if (!tensor.pieces.empty()) tensor.pieces[0].end += by;
        break;
      case 3:
        if (!tensor.pieces.empty()) tensor.pieces[0].blocks[0] ^= how[3];
        break;
      case 4:
        if (!tensor.pieces.empty()) tensor.pieces.push_back(tensor.pieces[0]);
        break;
      case 5:
        tensor.pieces.clear();
        break;
      case 6:
        manifest.files[0].header_bytes += by;
        break;
      default:
        manifest.tensors.erase(manifest.tensors.begin() + (&tensor - manifest.tensors.data()));
    }
    return print_manifest(manifest) != before;
  }

  static void read_parts(const CheckpointReader& reader, const LogicalTensor& tensor) {
    const int64_t elements = tensor.shape.elements();
    for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{0, elements}, {elements / 3, elements / 2}, {elements, elements}}) {
      int64_t planned = 0;
      for (const ReadRange& range : reader.plan(tensor, begin, end)) planned += range.bytes;
      std::vector<std::byte> out(static_cast<size_t>((end - begin) * bytes_of(tensor.dtype)));
      if (planned != std::ssize(out)) found("a plan of other bytes than were asked for");
      reader.read(tensor, begin, end, out);
    }
  }

  std::filesystem::path folder_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  static HostileFolder folder;
  const std::span<const uint8_t> bytes(data + 1, size - 1);
  switch (data[0] % 7) {
    case 0:
      read_header(words(bytes));
      break;
    case 1:
      read_stream(bytes);
      break;
    case 2:
      read_manifest(words(bytes));
      break;
    case 3:
      if (!bytes.empty()) read_manifest(guard_line(std::string(words(bytes))));
      break;
    case 4:
      parse_latest(words(bytes));
      if (!bytes.empty()) parse_latest(guard_line(std::string(words(bytes))));
      break;
    case 5:
      folder.read(bytes);
      break;
    default:
      folder.read_shards(words(bytes));
  }
  return 0;
}
