// A safetensors file as tensors that lie in memory, and back: the program's own reading of the format, for import and export of other
// names.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "mapped_file.h"
#include "stored_tensor.h"

namespace cli {

/// Throws Failure(kRefused), with the file and the tensor: what is no safetensors file, cut short, of a dtype that there is not.
std::vector<StoredTensor> read_safetensors(const MappedFile& file);

/// As they are, row-major, in an order of its own: wider dtypes first, then by name.
void write_safetensors(const std::string& path, std::vector<StoredTensor> tensors, const std::map<std::string, std::string>& metadata);

/// Bytes of an element, and the dtype's name in the format, "F32".
int64_t size_of(st_dtype dtype);
const char* safetensors_word(st_dtype dtype);

}  // namespace cli
