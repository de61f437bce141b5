#include "checkpoint/weight_files.h"

#include <algorithm>

#include "base/error.h"
#include "base/json_cursor.h"
#include "base/os/files.h"
#include "checkpoint/corrupt.h"

namespace st {
namespace {

constexpr std::string_view kFile = "model.safetensors", kMap = "model.safetensors.index.json";

[[noreturn]] void throw_not_found(const std::string& file, const std::string& tensor, std::string message) {
  Error error(Code::not_found, std::move(message));
  error.place.file = file;
  error.place.tensor = tensor;
  throw error;
}

/// Other names could lead out of the folder.
bool is_plain(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

std::string in_folder(const std::string& folder, std::string_view name) {
  return folder.empty() || folder.ends_with('/') ? text(folder, name) : text(folder, "/", name);
}

/// The folder's weights or index; a whole file takes precedence, as in transformers.
std::string weights_in_folder(const std::string& folder) {
  for (const std::string_view name : {kFile, kMap})
    if (std::string path = in_folder(folder, name); os::kind_of(path) != os::PathKind::none) return path;
  throw_not_found(
      folder, "",
      text(folder, ": the folder has neither ", kFile, " nor ", kMap, "; name a safetensors file, or a folder with one of these"));
}

}  // namespace

WeightMap parse_weight_map(std::string_view json, std::string_view file) {
  WeightMap map;
  bool has_map = false;
  std::string tensor;
  read_or_corrupt(file, tensor, [&] {
    JsonCursor in(json, file);
    in.object([&](std::string_view key) {
      if (key != "weight_map") {
        in.skip();
        return;
      }
      has_map = true;
      in.object([&](std::string_view name) {
        tensor = name;
        const std::string shard = in.text();
        if (!is_plain(shard))
          throw_corrupt(file, tensor, text("the shard \"", shard, "\" is not the name of a file in the index's folder"));
        map.emplace(name, shard);
      });
      tensor.clear();
    });
    in.end();
  });
  if (!has_map) throw_corrupt(file, "", "has no weight_map: not an index of safetensors shards");
  return map;
}

WeightFiles::WeightFiles(const std::string& path) {
  const std::string file = os::kind_of(path) == os::PathKind::folder ? weights_in_folder(path) : path;
  if (file.ends_with(".json"))
    open_shards(file);
  else
    files_.emplace_back(file);
}

void WeightFiles::open_shards(const std::string& map_path) {
  const os::MappedFile text_file(map_path);
  const WeightMap map = parse_weight_map({reinterpret_cast<const char*>(text_file.bytes().data()), text_file.bytes().size()}, map_path);
  const std::string folder = map_path.substr(0, map_path.rfind('/') + 1);  // empty: the current folder
  std::map<std::string_view, std::string_view> first_of;                   // shard to a tensor in it
  for (const auto& [tensor, shard] : map) first_of.emplace(shard, tensor);

  std::map<std::string_view, std::string_view> found;  // tensor to its shard
  for (const auto& first : first_of) {
    const std::string_view shard = first.first, tensor = first.second;  // clang 14's lambdas take no structured binding
    const std::string path = in_folder(folder, shard);
    if (os::kind_of(path) == os::PathKind::none)
      throw_not_found(path, std::string(tensor), text(map_path, ": shard ", shard, ", which has tensor ", tensor, ", does not exist"));
    const SafetensorsFile& file = files_.emplace_back(path);
    const auto take = [&](std::string_view name) {
      const auto mapped = map.find(name);
      if (mapped != map.end() && mapped->second != shard)
        throw_corrupt(map_path, name, text("is in shard ", shard, ", but the index names ", mapped->second));
      const auto [other, is_new] = found.emplace(name, shard);
      if (!is_new) throw_corrupt(map_path, name, text("is in two shards, ", other->second, " and ", shard));
    };
    for (const TensorRecord& record : file.header().tensors) take(record.name);
    for (const ForeignTensor& record : file.header().foreign) take(record.name);
  }
  for (const auto& [tensor, shard] : map)
    if (!found.contains(tensor)) throw_corrupt(map_path, tensor, text("is in no shard, but the index names ", shard));
}

std::vector<TensorRecord> WeightFiles::tensors() const {
  std::vector<TensorRecord> all;
  for (const SafetensorsFile& file : files_) all.insert(all.end(), file.header().tensors.begin(), file.header().tensors.end());
  return all;
}

std::vector<ForeignTensor> WeightFiles::foreign() const {
  std::vector<ForeignTensor> all;
  for (const SafetensorsFile& file : files_) all.insert(all.end(), file.header().foreign.begin(), file.header().foreign.end());
  return all;
}

}  // namespace st
