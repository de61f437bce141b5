#include "checkpoint/checkpoint_writer.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/json_line.h"
#include "base/os/file_access.h"

namespace st {
namespace {

constexpr std::string_view kIndexName = "model.safetensors.index.json";

std::string_view stem_of(TensorKind kind) {
  switch (kind) {
    case TensorKind::parameter:
      return "model";
    case TensorKind::optimizer:
      return "optimizer";
    case TensorKind::host:
      break;
  }
  return "tensors";
}

/// The tensors in name order, so that the layout does not depend on the order in which they are given.
std::vector<const WrittenTensor*> in_order(std::span<const WrittenTensor> tensors) {
  std::vector<const WrittenTensor*> order;
  for (const WrittenTensor& tensor : tensors) order.push_back(&tensor);
  std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) { return a->name < b->name; });
  const auto twice = std::adjacent_find(order.begin(), order.end(), [](const auto* a, const auto* b) { return a->name == b->name; });
  check(twice == order.end(), "checkpoint: tensor names must be unique, got ", twice == order.end() ? "" : (*twice)->name, " twice");
  return order;
}

/// The tensors of one kind, each whole, in shards of at most file_bytes; a larger tensor has a shard of its own.
std::vector<std::vector<ShardPiece>> shards_of(std::span<const WrittenTensor* const> order, TensorKind kind, int64_t file_bytes) {
  std::vector<std::vector<ShardPiece>> shards;
  int64_t left = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    const WrittenTensor& tensor = *order[i];
    if (tensor.kind != kind) continue;
    const int64_t bytes = tensor.shape.elements() * bytes_of(tensor.dtype);
    if (shards.empty() || bytes > left) {
      shards.emplace_back();
      left = file_bytes;
    }
    shards.back().push_back({i, 0, tensor.shape.elements(), tensor.bytes, tensor.copy});
    left -= bytes;
  }
  return shards;
}

/// The index in which Hugging Face's loaders find the file of a tensor.
std::string print_index(std::span<const IndexPlace> places, int64_t bytes) {
  std::string map;
  for (const auto& [tensor, file] : places) {
    map += map.empty() ? "{" : ",\n";
    append_json_string(map, tensor);
    map += ": ";
    append_json_string(map, file);
  }
  return text("{\"metadata\": {\"total_size\": ", bytes, "},\n\"weight_map\": ", map, "}}\n");
}

}  // namespace

std::string shard_name(TensorKind kind, size_t index, size_t count) {
  const auto digits = [](size_t number) {
    const std::string word = std::to_string(number);
    return std::string(5 - std::min<size_t>(5, word.size()), '0') + word;
  };
  return count == 1 ? text(stem_of(kind), ".safetensors")
                    : text(stem_of(kind), "-", digits(index + 1), "-of-", digits(count), ".safetensors");
}

void write_shard(const std::string& folder, const std::string& name, Manifest& manifest, std::span<const ShardPiece> pieces,
                 ShardWriter& writer) {
  std::vector<ShardTensor> tensors;
  for (const ShardPiece& piece : pieces) {
    const LogicalTensor& tensor = manifest.tensors[piece.tensor];
    const bool whole = piece.begin == 0 && piece.end == tensor.shape.elements();
    tensors.push_back(
        {{piece_name(tensor, {0, piece.begin, piece.end, {}}), tensor.dtype, whole ? tensor.shape : Shape{piece.end - piece.begin}, 0},
         piece.bytes,
         piece.copy});
  }
  WrittenShard written = writer.write(text(folder, "/", name), tensors, {{"format", "pt"}});  // transformers refuses a file without it
  for (size_t k = 0; k < tensors.size(); ++k) {
    const ShardPiece& piece = pieces[k];
    LogicalTensor& tensor = manifest.tensors[piece.tensor];
    tensor.finite = tensor.finite && written.finite[k];
    if (piece.begin < piece.end)
      tensor.pieces.push_back({static_cast<int32_t>(manifest.files.size()), piece.begin, piece.end, std::move(written.blocks[k])});
  }
  manifest.files.push_back({name, written.bytes, written.header_bytes, written.header_crc});
}

void write_index(const std::string& folder, Manifest& manifest, std::span<const IndexPlace> places, int64_t bytes, ShardWriter& writer) {
  const std::string index(kIndexName);
  const WrittenShard written = writer.write_text(text(folder, "/", index), print_index(places, bytes));
  manifest.files.push_back({index, written.bytes, written.header_bytes, written.header_crc});
}

void write_shards(const std::string& folder, Manifest& manifest, TensorKind kind, std::span<const std::vector<ShardPiece>> shards,
                  ShardWriter& writer) {
  std::vector<IndexPlace> places;
  int64_t bytes = 0;
  for (size_t i = 0; i < shards.size(); ++i) {
    const std::string name = shard_name(kind, i, shards.size());
    write_shard(folder, name, manifest, shards[i], writer);
    for (const ShardPiece& piece : shards[i]) {
      const LogicalTensor& tensor = manifest.tensors[piece.tensor];
      places.emplace_back(piece_name(tensor, {0, piece.begin, piece.end, {}}), name);
      bytes += (piece.end - piece.begin) * bytes_of(tensor.dtype);
    }
  }
  if (kind == TensorKind::parameter && shards.size() > 1) write_index(folder, manifest, places, bytes, writer);
}

void commit_manifest(const std::string& folder, const Manifest& manifest) {
  const std::string path = text(folder, "/", kManifestName), temporary = path + ".tmp";
  const std::string content = print_manifest(manifest);
  os::OutputFile file(temporary, os::OutputFile::Open::fresh);
  file.write_at(0, std::as_bytes(std::span(content)));
  file.sync();
  file.close();
  os::sync_folder(folder);  // the names of the shards must be durable before the manifest's
  os::rename_file(temporary, path);
  os::sync_folder(folder);
}

Manifest write_checkpoint(const std::string& folder, Manifest manifest, std::span<const WrittenTensor> tensors, const WriteOptions& options,
                          WriteProgress& progress) {
  const std::vector<const WrittenTensor*> order = in_order(tensors);
  manifest.files.clear();
  manifest.tensors.clear();
  for (const WrittenTensor* tensor : order) manifest.tensors.push_back({tensor->name, tensor->kind, tensor->dtype, tensor->shape, {}});
  progress.done = 0;
  progress.all = manifest.bytes();

  ShardWriter writer(options.bytes_per_second, progress);
  for (const TensorKind kind : {TensorKind::parameter, TensorKind::optimizer, TensorKind::host})
    write_shards(folder, manifest, kind, shards_of(order, kind, options.file_bytes), writer);
  commit_manifest(folder, manifest);
  return manifest;
}

}  // namespace st
