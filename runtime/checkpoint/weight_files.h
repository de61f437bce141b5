// The weights at a path: one safetensors file, or shards with Hugging Face's index of them.
//   {"metadata": {"total_size": 4400}, "weight_map": {"wte.weight": "model-00001-of-00002.safetensors", ..}}
#pragma once

#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/safetensors.h"

namespace st {

/// Maps a tensor to its shard.
using WeightMap = std::map<std::string, std::string, std::less<>>;

/// The weight_map of a model.safetensors.index.json. Throws corrupt, naming `file`, if the text is not such an index or a shard's name is
/// not a plain file name.
WeightMap parse_weight_map(std::string_view json, std::string_view file);

class WeightFiles {
 public:
  /// `path`: a safetensors file, an index (ends with .json), or a folder with a model.safetensors or a model.safetensors.index.json. Opens
  /// all shards. Throws not_found if a shard is missing or a folder has no weights; corrupt if a file is damaged, or a tensor is in two
  /// shards, in none, or not in the one that the index names. The error names the file, the shard and the tensor.
  explicit WeightFiles(const std::string& path);

  /// By name.
  const std::deque<SafetensorsFile>& files() const { return files_; }
  /// The tensors of all files, one file after the other.
  std::vector<TensorRecord> tensors() const;
  std::vector<ForeignTensor> foreign() const;

 private:
  void open_shards(const std::string& map_path);

  std::deque<SafetensorsFile> files_;
};

}  // namespace st
