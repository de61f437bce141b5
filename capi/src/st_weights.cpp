// Inspects weight files of any program.
#include <scaletrain/model.h>

#include <string>
#include <vector>

#include "base/json_line.h"
#include "checkpoint/weight_files.h"
#include "guard.h"
#include "host_metadata.h"
#include "thread_text.h"

using namespace st;
using namespace st::capi;

namespace {

std::string row_of(const SafetensorsFile& file) {
  JsonLine row;
  row.add("path", file.path()).add("bytes", file.data_begin() + file.header().data_bytes);
  row.add_json("metadata", json_of(file.header().metadata));
  return row.text();
}

std::string row_of(const std::string& name, std::string_view dtype, std::span<const int64_t> shape, size_t file, int64_t begin, int64_t end,
                   bool is_readable) {
  JsonLine row;
  row.add("name", name).add("dtype", dtype).add_json("shape", text(shape)).add("file", file);
  row.add("begin", begin).add("end", end).add("readable", is_readable);
  return row.text();
}

std::string describe(const WeightFiles& weights) {
  std::vector<std::string> files, tensors;
  size_t foreign = 0;
  for (const SafetensorsFile& file : weights.files()) {
    const int64_t data = file.data_begin();
    for (const TensorRecord& t : file.header().tensors)
      tensors.push_back(
          row_of(t.name, safetensors_name(t.dtype), t.shape.dims(), files.size(), data + t.offset, data + t.offset + t.bytes(), true));
    for (const ForeignTensor& t : file.header().foreign)
      tensors.push_back(row_of(t.name, t.dtype, t.shape, files.size(), data + t.offset, data + t.offset + t.bytes, false));
    foreign += file.header().foreign.size();
    files.push_back(row_of(file));
  }
  JsonLine all;
  all.add_json("files", json_list(files)).add_json("tensors", json_list(tensors)).add("foreign", foreign);
  return all.text();
}

}  // namespace

st_status st_weights_inspect(const char* path, const char** json) {
  return guard([&] {
    static ThreadText answer;
    given(json, "st_weights_inspect: json");
    const std::string given_path = text_given(path, "st_weights_inspect: path");
    check(!given_path.empty(), "st_weights_inspect: path is empty; name a safetensors file, or a folder that has one");
    *json = answer.keep(describe(WeightFiles(given_path)), "st_weights_inspect");
  });
}
