#include "safetensors_file.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "new_file.h"
#include "options.h"

namespace cli {
namespace {

struct DtypeWord {
  st_dtype dtype;
  const char* word;
  int64_t bytes;
};
constexpr DtypeWord kDtypeWords[] = {{ST_F32, "F32", 4}, {ST_F64, "F64", 8}, {ST_BF16, "BF16", 2}, {ST_F16, "F16", 2},
                                     {ST_I32, "I32", 4}, {ST_I64, "I64", 8}, {ST_U8, "U8", 1},     {ST_BOOL, "BOOL", 1}};
constexpr uint64_t kMostHeaderBytes = 100'000'000;  // the format's own limit

const DtypeWord& row_of(st_dtype dtype) { return *std::ranges::find(kDtypeWords, dtype, &DtypeWord::dtype); }

/// A tensor as the header tells it.
struct HeaderRow {
  std::string name, dtype;
  bool has_shape = false;
  std::vector<int64_t> shape, range;
};

[[noreturn]] void refuse_row(const std::string& path, const std::string& name) {
  refuse(path, ": ", name, ": its row of the header is none; there must be dtype, shape of at most 8 and data_offsets");
}

/// Takes a header as it is read and refuses what belongs to none as soon as it comes, so that a hostile one costs neither the memory nor
/// the time of a tree: of two equal keys that would keep one.
class HeaderEvents final : public Json::json_sax_t {
 public:
  explicit HeaderEvents(const std::string& path) : path_(path) {}

  std::vector<HeaderRow> rows;

  bool null() override { refuse_row(); }
  bool boolean(bool) override { refuse_row(); }
  bool number_integer(int64_t) override { refuse_row(); }  // below 0
  bool number_float(double, const std::string&) override { refuse_row(); }
  bool number_unsigned(uint64_t value) override {
    if (depth_ != 3 || value > INT64_MAX || list().size() == (key_ == "shape" ? 8 : 2)) refuse_row();
    list().push_back(static_cast<int64_t>(value));
    return true;
  }
  bool string(std::string& value) override {
    if (depth_ != 2 || !(is_metadata() || key_ == "dtype")) refuse_row();
    if (!is_metadata()) rows.back().dtype = std::move(value);
    return true;
  }
  bool binary(Json::binary_t&) override { return false; }  // not in a text
  bool start_object(size_t) override {
    if (depth_ > 1) refuse_row();
    ++depth_;
    return true;
  }
  bool start_array(size_t) override {
    if (depth_ != 2 || is_metadata() || !(key_ == "shape" || key_ == "data_offsets")) refuse_row();
    if (key_ == "shape") rows.back().has_shape = true;
    ++depth_;
    return true;
  }
  bool end_object() override { return --depth_ >= 0; }
  bool end_array() override { return --depth_ >= 0; }
  bool key(std::string& value) override {
    std::set<std::string>& known = depth_ == 1 ? names_ : keys_;
    if (depth_ == 1) name_ = value;
    if (!known.insert(value).second)
      refuse(path_, ": ", name_, depth_ == 1 ? " is in its header twice" : ": its row of the header has " + value + " twice");
    key_ = value;
    if (depth_ == 1) keys_.clear();
    if (depth_ == 1 && !is_metadata()) rows.push_back({value, "", false, {}, {}});
    return true;
  }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

 private:
  bool is_metadata() const { return name_ == "__metadata__"; }
  std::vector<int64_t>& list() { return key_ == "shape" ? rows.back().shape : rows.back().range; }
  [[noreturn]] void refuse_row() const { cli::refuse_row(path_, name_); }

  const std::string& path_;
  int depth_ = 0;                       // 1: among the tensors, 2: in a row, 3: in a list of it
  std::string name_, key_;              // of the row; in it
  std::set<std::string> names_, keys_;  // that came already
};

StoredTensor read_tensor(const HeaderRow& told, std::string_view data, const std::string& path) {
  const auto& [name, word, has_shape, shape, range] = told;
  if (word.empty() || !has_shape || range.size() != 2) refuse_row(path, name);
  StoredTensor tensor;
  tensor.name = name;
  tensor.dims = shape;
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
  HeaderEvents header(file.path());
  const std::string_view text = bytes.substr(8, size);
  if (!Json::sax_parse(text.begin(), text.end(), &header)) refuse(file.path(), ": its header is no JSON object: not a safetensors file");
  std::vector<StoredTensor> tensors;
  for (const HeaderRow& row : header.rows) tensors.push_back(read_tensor(row, bytes.substr(8 + size), file.path()));
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
