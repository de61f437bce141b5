// The weights that a path names: one safetensors file, or shards with Hugging Face's map of them.
//   {"metadata": {"total_size": 4400}, "weight_map": {"wte.weight": "model-00001-of-00002.safetensors", ..}}
#pragma once

#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/safetensors.h"

namespace st {

/// By tensor, the shard that has it.
using WeightMap = std::map<std::string, std::string, std::less<>>;

/// The weight_map of a model.safetensors.index.json. Throws corrupt, naming `file`: not such a text, or a shard that is not a plain name.
WeightMap parse_weight_map(std::string_view json, std::string_view file);

class WeightFiles {
 public:
  /// `path`: a safetensors file; a map, by its ending .json; or a folder that has a model.safetensors or a model.safetensors.index.json.
  /// All shards are opened. Throws not_found: a shard that is not there, a folder without weights; corrupt: a file that is damaged, a
  /// tensor that is in two shards, in none, or not in the one that the map says. Each names the file, the shard and the tensor.
  explicit WeightFiles(const std::string& path);

  /// By name.
  const std::deque<SafetensorsFile>& files() const { return files_; }
  /// Of all files, one file after the other.
  std::vector<TensorRecord> tensors() const;
  std::vector<ForeignTensor> foreign() const;

 private:
  void open_shards(const std::string& map_path);

  std::deque<SafetensorsFile> files_;
};

}  // namespace st
