#include "checkpoint/safetensors_header.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/json_cursor.h"
#include "base/json_line.h"
#include "base/utf8.h"
#include "checkpoint/corrupt.h"

namespace st {
namespace {

constexpr std::string_view kMetadata = "__metadata__";

constexpr std::array<std::pair<DType, std::string_view>, 8> kDTypes = {{{DType::f32, "F32"},
                                                                        {DType::f64, "F64"},
                                                                        {DType::bf16, "BF16"},
                                                                        {DType::f16, "F16"},
                                                                        {DType::i32, "I32"},
                                                                        {DType::i64, "I64"},
                                                                        {DType::u8, "U8"},
                                                                        {DType::boolean, "BOOL"}}};

struct Found {  // a tensor as the file tells it
  std::string name, dtype;
  std::vector<int64_t> shape, offsets;
};

/// Reads a header member by member and refuses what is none as soon as it comes: nothing deep or large is ever built.
class HeaderText {
 public:
  HeaderText(std::string_view json, std::string_view file) : file_(file), in_(json, file) {}

  void read() {
    in_.object([&](std::string_view key) {
      if (key == kMetadata)
        in_.object([&](std::string_view name) { metadata.emplace(name, in_.text()); });
      else
        read_tensor(key);
    });
    in_.end();
  }

  std::vector<Found> tensors;
  Metadata metadata;
  std::string tensor;  // that is being read

 private:
  void read_tensor(std::string_view name) {
    tensor = name;
    Found& t = tensors.emplace_back();
    t.name = name;
    size_t known = 0;
    in_.object([&](std::string_view key) {
      ++known;
      if (key == "dtype")
        t.dtype = in_.text();
      else if (key == "shape")
        read_numbers(t.shape, kMaxDims, "dimensions");
      else if (key == "data_offsets")
        read_numbers(t.offsets, 2, "data_offsets");
      else
        throw_corrupt(file_, tensor, text("has an unknown key ", key));
    });
    if (known != 3 || t.offsets.size() != 2) throw_corrupt(file_, tensor, "needs dtype, shape and two data_offsets");
    tensor.clear();
  }

  void read_numbers(std::vector<int64_t>& numbers, size_t most, std::string_view what) {
    in_.list([&] {
      if (numbers.size() == most) throw_corrupt(file_, tensor, text("has more than ", most, " ", what));
      numbers.push_back(in_.whole());
      if (numbers.back() < 0) throw_corrupt(file_, tensor, text("has the number ", numbers.back(), " among its ", what));
    });
  }

  std::string_view file_;
  JsonCursor in_;
};

DType dtype_of(const Found& found, std::string_view file) {
  if (const auto dtype = dtype_of_safetensors(found.dtype)) return *dtype;
  std::string known;
  for (const auto& row : kDTypes) known += (known.empty() ? "" : ", ") + std::string(row.second);
  throw_corrupt(file, found.name, text("unknown dtype ", found.dtype, "; there are: ", known));
}

TensorRecord record_of(const Found& found, std::string_view file) {
  TensorRecord record{found.name, dtype_of(found, file), {}, found.offsets[0]};
  int64_t bytes = bytes_of(record.dtype);
  for (const int64_t dim : found.shape)
    if (__builtin_mul_overflow(bytes, dim, &bytes))
      throw_corrupt(file, found.name, text("shape ", std::span(found.shape), " overflows 64 bits"));
  record.shape = Shape(std::span(found.shape));
  const auto [begin, end] = std::pair{found.offsets[0], found.offsets[1]};
  if (end < begin || end - begin != bytes)
    throw_corrupt(
        file, found.name,
        text("data_offsets ", std::span(found.offsets), " do not hold the ", bytes, " bytes of ", found.dtype, " ", record.shape));
  return record;
}

std::string quoted(const std::string& word) {
  check(utf8_valid_until(word) == word.size(), "safetensors: names and metadata must be UTF-8, got ", word);
  std::string out;
  append_json_string(out, word);
  return out;
}

}  // namespace

std::string_view safetensors_name(DType dtype) {
  return std::find_if(kDTypes.begin(), kDTypes.end(), [&](const auto& row) { return row.first == dtype; })->second;
}

std::optional<DType> dtype_of_safetensors(std::string_view name) noexcept {
  const auto row = std::find_if(kDTypes.begin(), kDTypes.end(), [&](const auto& each) { return each.second == name; });
  return row == kDTypes.end() ? std::optional<DType>() : row->first;
}

const TensorRecord* SafetensorsHeader::find(std::string_view name) const {
  const auto found = std::find_if(tensors.begin(), tensors.end(), [&](const TensorRecord& t) { return t.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

SafetensorsHeader arrange(std::vector<TensorRecord> tensors, Metadata metadata) {
  const auto order = [](const TensorRecord& t) { return std::pair<int64_t, const std::string&>(-bytes_of(t.dtype), t.name); };
  std::sort(tensors.begin(), tensors.end(), [&](const TensorRecord& a, const TensorRecord& b) { return order(a) < order(b); });

  std::set<std::string_view> names;
  int64_t end = 0;
  for (TensorRecord& tensor : tensors) {
    check(names.insert(tensor.name).second, "safetensors: two tensors are called ", tensor.name);
    check(tensor.name != kMetadata, "safetensors: a tensor cannot be called ", kMetadata, ", the format keeps that name for itself");
    check(!tensor.shape.is_symbolic(), "safetensors: ", tensor.name, " has no fixed shape, got ", tensor.shape);
    tensor.offset = end;
    int64_t bytes = 0;
    check(!__builtin_mul_overflow(tensor.shape.elements(), bytes_of(tensor.dtype), &bytes) && !__builtin_add_overflow(end, bytes, &end),
          "safetensors: ", tensor.name, " ", tensor.shape, " takes the file past 64 bits");
  }
  return {std::move(tensors), std::move(metadata), end};
}

std::string print_header(const SafetensorsHeader& header) {
  std::string json = "{";
  const auto separate = [&] { json += json.size() > 1 ? "," : ""; };
  if (!header.metadata.empty()) {
    json += "\"__metadata__\":{";
    const char* comma = "";
    for (const auto& [key, value] : header.metadata) json += std::exchange(comma, ",") + quoted(key) + ":" + quoted(value);
    json += "}";
  }
  for (const TensorRecord& t : header.tensors) {
    separate();
    json += quoted(t.name) + text(":{\"dtype\":\"", safetensors_name(t.dtype), "\",\"shape\":[");
    for (int32_t i = 0; i < t.shape.rank(); ++i) json += text(i == 0 ? "" : ",", t.shape[i]);
    json += text("],\"data_offsets\":[", t.offset, ",", t.offset + t.bytes(), "]}");
  }
  json += "}";
  json.resize((json.size() + 7) / 8 * 8, ' ');
  check(static_cast<int64_t>(json.size()) <= kMaxHeaderBytes, "safetensors: the header would take ", json.size(),
        " bytes, the format allows ", kMaxHeaderBytes, "; write fewer or shorter names");

  std::string out(8, '\0');
  for (size_t i = 0; i < 8; ++i) out[i] = static_cast<char>(json.size() >> (8 * i) & 0xFF);
  return out + json;
}

int64_t header_length(std::span<const std::byte> bytes, std::string_view file) {
  uint64_t length = 0;
  for (size_t i = 0; i < size_t{kLengthBytes}; ++i) length |= std::to_integer<uint64_t>(bytes[i]) << (8 * i);
  if (length > kMaxHeaderBytes)
    throw_corrupt(file, "", text("says its header has ", length, " bytes, the format allows ", kMaxHeaderBytes, ": not a safetensors file"),
                  0);
  return static_cast<int64_t>(length);
}

SafetensorsHeader parse_header(std::string_view json, std::string_view file) {
  if (json.empty() || json.front() != '{') throw_corrupt(file, "", "the header does not start with {: not a safetensors file");
  HeaderText in(json, file);
  read_or_corrupt(file, in.tensor, [&] { in.read(); });

  SafetensorsHeader header;
  header.metadata = std::move(in.metadata);
  for (const Found& found : in.tensors) header.tensors.push_back(record_of(found, file));
  // Empty tensors share their offset with the next one: they come first.
  std::sort(header.tensors.begin(), header.tensors.end(), [](const TensorRecord& a, const TensorRecord& b) {
    return std::tuple(a.offset, a.bytes(), std::string_view(a.name)) < std::tuple(b.offset, b.bytes(), std::string_view(b.name));
  });
  for (const TensorRecord& tensor : header.tensors) {
    if (tensor.offset != header.data_bytes)
      throw_corrupt(file, tensor.name,
                    text("starts at byte ", tensor.offset, " of the data where byte ", header.data_bytes,
                         " is next: ", tensor.offset < header.data_bytes ? "it overlaps another" : "there is a gap before it"));
    header.data_bytes += tensor.bytes();  // cannot overflow: offset + bytes was an int64 in the file
  }
  return header;
}

}  // namespace st
