#include "safetensors_file.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "new_file.h"
#include "options.h"

namespace cli {
namespace {

using Header = nlohmann::json;  // not the program's own, which keeps the order of keys and looks for one key among all

struct DtypeWord {
  st_dtype dtype;
  const char* word;
  int64_t bytes;
};
constexpr DtypeWord kDtypeWords[] = {{ST_F32, "F32", 4}, {ST_F64, "F64", 8}, {ST_BF16, "BF16", 2}, {ST_F16, "F16", 2},
                                     {ST_I32, "I32", 4}, {ST_I64, "I64", 8}, {ST_U8, "U8", 1},     {ST_BOOL, "BOOL", 1}};
constexpr uint64_t kMostHeaderBytes = 100'000'000;  // the format's own limit

const DtypeWord& row_of(st_dtype dtype) { return *std::ranges::find(kDtypeWords, dtype, &DtypeWord::dtype); }

/// A list of whole numbers from 0, or nothing.
bool read_numbers(const Header& record, const char* key, size_t most, std::vector<int64_t>& out) {
  const auto found = record.find(key);
  if (found == record.end() || !found->is_array() || found->size() > most) return false;
  for (const Header& item : *found) {
    if (!item.is_number_unsigned() || item.get<uint64_t>() > INT64_MAX) return false;
    out.push_back(item.get<int64_t>());
  }
  return true;
}

StoredTensor read_tensor(const std::string& name, const Header& record, std::string_view data, const std::string& path) {
  StoredTensor tensor;
  tensor.name = name;
  std::vector<int64_t> range;
  const bool is_record = record.is_object() && record.contains("dtype") && record["dtype"].is_string() &&
                         read_numbers(record, "shape", 8, tensor.dims) && read_numbers(record, "data_offsets", 2, range) &&
                         range.size() == 2;
  if (!is_record) refuse(path, ": ", name, ": its row of the header is none; there must be dtype, shape of at most 8 and data_offsets");
  const auto word = record["dtype"].get<std::string>();
  const auto* row = std::ranges::find(kDtypeWords, word, &DtypeWord::word);
  if (row == std::end(kDtypeWords)) refuse(path, ": ", name, " is ", word, "; there is F32, F64, BF16, F16, I32, I64, U8 and BOOL");
  tensor.dtype = row->dtype;
  int64_t bytes = row->bytes;
  for (const int64_t dim : tensor.dims)
    if (__builtin_mul_overflow(bytes, dim, &bytes)) refuse(path, ": ", name, ": its shape overflows");
  if (range[0] > range[1] || range[1] > std::ssize(data)) refuse(path, ": ", name, " reaches beyond the file: it is cut short");
  if (range[1] - range[0] != bytes)
    refuse(path, ": ", name, ": its shape needs ", bytes, " bytes, data_offsets give ", range[1] - range[0]);
  tensor.bytes = data.substr(static_cast<size_t>(range[0]), static_cast<size_t>(bytes));
  return tensor;
}

/// Of two equal keys nlohmann would keep one; and what is nested deeper than a record's lists is not kept, so that a hostile header takes
/// no memory that a right one would not.
Header parse_header(std::string_view text, const std::string& path) {
  std::set<std::string> names, keys;  // of the tensors; of the record that is open
  std::string name;
  const auto look = [&](int depth, Header::parse_event_t event, const Header& value) {
    if (event == Header::parse_event_t::object_start && depth == 1) keys.clear();
    if (event == Header::parse_event_t::key && depth == 1) {
      name = value.get<std::string>();
      if (!names.insert(name).second) refuse(path, ": ", name, " is in its header twice");
    }
    if (event == Header::parse_event_t::key && depth == 2 && !keys.insert(value.get<std::string>()).second)
      refuse(path, ": ", name, ": its row of the header has ", value.get<std::string>(), " twice");
    return depth <= 4;
  };
  Header header = Header::parse(text, look, false);
  if (!header.is_object()) refuse(path, ": its header is no JSON object: not a safetensors file");
  return header;
}

/// One behind the other, without gaps.
void check_tiling(std::vector<StoredTensor> tensors, std::string_view data, const std::string& path) {
  std::ranges::sort(tensors, {}, [](const StoredTensor& t) { return std::pair(t.bytes.data(), t.bytes.size()); });
  const char* end = data.data();
  for (const StoredTensor& t : tensors) {
    if (t.bytes.data() != end) refuse(path, ": ", t.name, " does not begin where the one before it ends");
    end += t.bytes.size();
  }
  if (end != data.data() + data.size()) refuse(path, ": ", data.data() + data.size() - end, " bytes at its end belong to no tensor");
}

}  // namespace

int64_t size_of(st_dtype dtype) { return row_of(dtype).bytes; }
const char* safetensors_word(st_dtype dtype) { return row_of(dtype).word; }

std::vector<StoredTensor> read_safetensors(const MappedFile& file) {
  const std::string_view bytes = file.bytes();
  uint64_t size = 0;
  for (size_t i = std::min<size_t>(8, bytes.size()); i-- > 0;) size = size << 8 | static_cast<unsigned char>(bytes[i]);
  if (bytes.size() < 8 || size > bytes.size() - 8 || size > kMostHeaderBytes || bytes[8] != '{')
    refuse(file.path(), " is no safetensors file, or cut short");
  const Header header = parse_header(bytes.substr(8, size), file.path());
  std::vector<StoredTensor> tensors;
  for (const auto& [name, record] : header.items())
    if (name != "__metadata__") tensors.push_back(read_tensor(name, record, bytes.substr(8 + size), file.path()));
  check_tiling(tensors, bytes.substr(8 + size), file.path());
  return tensors;
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
