// Safetensors files as tensors in memory, for import and export under other names. The library parses the files; this program only maps the
// tensors that the library finds.
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

/// The result of st_weights_inspect. Throws Failure(kRefused).
Json inspect_weights(const std::string& path);

struct StoredWeights {
  std::deque<MappedFile> files;
  std::vector<StoredTensor> tensors;  // point into the files
  std::vector<std::string> foreign;   // skipped: "scale (I8)"
  Json metadata = Json::object();     // of all files, without "format", which names a layout
};

/// Reads what st_model_read_file would read from `path`. Throws Failure(kRefused) with the library's text.
StoredWeights read_safetensors(const std::string& path);

/// Writes the tensors row-major, sorted for the file: wider dtypes first, then by name.
void write_safetensors(const std::string& path, std::vector<StoredTensor> tensors, const std::map<std::string, std::string>& metadata);

/// Bytes of an element, and the dtype's name in the format, "F32".
int64_t size_of(st_dtype dtype);
const char* safetensors_word(st_dtype dtype);

}  // namespace cli
