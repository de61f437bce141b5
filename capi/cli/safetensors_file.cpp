#include "safetensors_file.h"

#include <algorithm>
#include <filesystem>
#include <tuple>
#include <utility>

#include "new_file.h"

namespace cli {
namespace {

struct DtypeWord {
  st_dtype dtype;
  std::string_view word;
  int64_t bytes;
};
constexpr DtypeWord kDtypeWords[] = {{ST_F32, "F32", 4}, {ST_F64, "F64", 8}, {ST_BF16, "BF16", 2}, {ST_F16, "F16", 2},
                                     {ST_I32, "I32", 4}, {ST_I64, "I64", 8}, {ST_U8, "U8", 1},     {ST_BOOL, "BOOL", 1}};

const DtypeWord& row_of(st_dtype dtype) { return *std::ranges::find(kDtypeWords, dtype, &DtypeWord::dtype); }

StoredTensor tensor_of(const Json& row, const MappedFile& file) {
  StoredTensor tensor;
  tensor.name = row["name"].get<std::string>();
  if (tensor.name.find('\0') != std::string::npos) refuse(file.path(), ": ", row["name"].dump(), " has a NUL in its name; rename it");
  tensor.dtype = std::ranges::find(kDtypeWords, row["dtype"].get<std::string>(), &DtypeWord::word)->dtype;
  tensor.dims = row["shape"].get<std::vector<int64_t>>();
  const auto begin = row["begin"].get<size_t>(), end = row["end"].get<size_t>();
  if (end > file.bytes().size())
    refuse(file.path(), ": ", tensor.name, " extends beyond the end of the file: another process truncated it");
  tensor.bytes = file.bytes().substr(begin, end - begin);
  return tensor;
}

}  // namespace

int64_t size_of(st_dtype dtype) { return row_of(dtype).bytes; }
const char* safetensors_word(st_dtype dtype) { return row_of(dtype).word.data(); }

bool is_weights(const std::string& path) {
  const std::filesystem::path folder(path);
  std::error_code unknown;
  const auto has = [&](const char* name) { return std::filesystem::exists(folder / name, unknown); };
  return std::filesystem::is_regular_file(folder, unknown) ||
         (!has("manifest.json") && (has("model.safetensors") || has("model.safetensors.index.json")));
}

Json inspect_weights(const std::string& path) {
  const char* json = nullptr;
  ask(st_weights_inspect(path.c_str(), &json));
  return Json::parse(json);
}

StoredWeights read_safetensors(const std::string& path) {
  const Json found = inspect_weights(path);
  StoredWeights made;
  for (const Json& row : found["files"]) {
    made.files.emplace_back(row["path"].get<std::string>());
    made.metadata.update(row["metadata"]);
  }
  made.metadata.erase("format");
  for (const Json& row : found["tensors"]) {
    if (row["readable"].get<bool>())
      made.tensors.push_back(tensor_of(row, made.files[row["file"].get<size_t>()]));
    else
      made.foreign.push_back(row["name"].get<std::string>() + " (" + row["dtype"].get<std::string>() + ")");
  }
  return made;
}

void write_safetensors(const std::string& path, std::vector<StoredTensor> tensors, const std::map<std::string, std::string>& metadata) {
  std::ranges::sort(tensors, {}, [](const StoredTensor& t) { return std::tuple(-size_of(t.dtype), std::string_view(t.name)); });
  Json header = Json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  size_t at = 0;
  for (const StoredTensor& t : tensors) {
    header[t.name] = {{"dtype", safetensors_word(t.dtype)}, {"shape", t.dims}, {"data_offsets", {at, at + t.bytes.size()}}};
    at += t.bytes.size();
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::string length;
  for (int i = 0; i < 8; ++i) length += static_cast<char>(text.size() >> 8 * i & 0xFF);
  NewFile file(path);
  file.add(length + text);
  for (const StoredTensor& t : tensors) file.add(t.bytes);
  file.finish();
}

}  // namespace cli
