// Files of safetensors as tensors that lie in memory, for import and export of other names. The library reads them, this program only maps
// what the library finds there.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "mapped_file.h"
#include "options.h"
#include "stored_tensor.h"

namespace cli {

/// Whether `path` is a file, or a folder that has weights and is neither a checkpoint nor a run's folder.
bool is_weights(const std::string& path);

/// st_weights_inspect's. Throws Failure(kRefused).
Json inspect_weights(const std::string& path);

struct StoredWeights {
  std::deque<MappedFile> files;
  std::vector<StoredTensor> tensors;  // lie in the files
  std::vector<std::string> foreign;   // passed over: "scale (I8)"
  Json metadata = Json::object();     // of all files, but "format": whose layout it is
};

/// What `path` holds for st_model_read_file. Throws Failure(kRefused), with the library's text.
StoredWeights read_safetensors(const std::string& path);

/// As they are, row-major, in an order of its own: wider dtypes first, then by name.
void write_safetensors(const std::string& path, std::vector<StoredTensor> tensors, const std::map<std::string, std::string>& metadata);

/// Bytes of an element, and the dtype's name in the format, "F32".
int64_t size_of(st_dtype dtype);
const char* safetensors_word(st_dtype dtype);

}  // namespace cli
