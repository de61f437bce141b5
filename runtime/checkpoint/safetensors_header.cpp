#include "checkpoint/safetensors_header.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <set>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/json_cursor.h"
#include "base/json_line.h"
#include "base/utf8.h"
#include "checkpoint/corrupt.h"

namespace st {
namespace {

constexpr std::string_view kMetadata = "__metadata__";

/// The dtypes of the format, as of safetensors 0.8.0.
struct DTypeRow {
  std::string_view name;
  int64_t bits;
  std::optional<DType> ours = {};  // nullopt: foreign
};
constexpr DTypeRow kDTypes[] = {{"F32", 32, DType::f32},
                                {"F64", 64, DType::f64},
                                {"BF16", 16, DType::bf16},
                                {"F16", 16, DType::f16},
                                {"I32", 32, DType::i32},
                                {"I64", 64, DType::i64},
                                {"U8", 8, DType::u8},
                                {"BOOL", 8, DType::boolean},
                                {"I8", 8},
                                {"I16", 16},
                                {"U16", 16},
                                {"U32", 32},
                                {"U64", 64},
                                {"C64", 64},
                                {"F8_E4M3", 8},
                                {"F8_E5M2", 8},
                                {"F8_E8M0", 8},
                                {"F8_E4M3FNUZ", 8},
                                {"F8_E5M2FNUZ", 8},
                                {"F6_E2M3", 6},
                                {"F6_E3M2", 6},
                                {"F4", 4}};

struct Found {  // a tensor as described in the file
  std::string name, dtype;
  std::vector<int64_t> shape, offsets;
};

/// Reads a header member by member and throws at the first that is wrong, so nothing deep or large is ever built.
class HeaderText {
 public:
  HeaderText(std::string_view json, std::string_view file) : file_(file), in_(json, file) {}

  void read() {
    in_.object([&](std::string_view key) {
      if (key == kMetadata && in_.null()) return;
      if (key == kMetadata)
        in_.object([&](std::string_view name) { metadata.emplace(name, in_.text()); });
      else
        read_tensor(key);
    });
    in_.end();
  }

  std::vector<Found> tensors;
  Metadata metadata;
  std::string tensor;  // the one being read

 private:
  void read_tensor(std::string_view name) {
    tensor = name;
    Found& t = tensors.emplace_back();
    t.name = name;
    bool has_shape = false;
    in_.object([&](std::string_view key) {
      if (key == "dtype")
        t.dtype = in_.text();
      else if (key == "shape")
        has_shape = read_numbers(t.shape, SIZE_MAX, "dimensions");
      else if (key == "data_offsets")
        read_numbers(t.offsets, 2, "data_offsets");
      else
        in_.skip();
    });
    if (t.dtype.empty() || !has_shape || t.offsets.size() != 2) throw_corrupt(file_, tensor, "needs dtype, shape and two data_offsets");
    tensor.clear();
  }

  bool read_numbers(std::vector<int64_t>& numbers, size_t most, std::string_view what) {
    in_.list([&] {
      if (numbers.size() == most) throw_corrupt(file_, tensor, text("has more than ", most, " ", what));
      numbers.push_back(in_.whole());
      if (numbers.back() < 0) throw_corrupt(file_, tensor, text("its ", what, " must be 0 or more, got ", numbers.back()));
    });
    return true;
  }

  std::string_view file_;
  JsonCursor in_;
};

const DTypeRow& dtype_of(const Found& found, std::string_view file) {
  const auto row = std::ranges::find(kDTypes, found.dtype, &DTypeRow::name);
  if (row != std::end(kDTypes)) return *row;
  std::string known;
  for (const DTypeRow& each : kDTypes) known += (known.empty() ? "" : ", ") + std::string(each.name);
  throw_corrupt(file, found.name, text("unknown dtype ", found.dtype, "; the format has ", known));
}

/// The bytes of the tensor, which its offsets must span.
int64_t size_of(const Found& found, const DTypeRow& dtype, std::string_view file) {
  int64_t elements = 1, bits = 0;
  for (const int64_t dim : found.shape)
    if (__builtin_mul_overflow(elements, dim, &elements))
      throw_corrupt(file, found.name, text("shape ", std::span(found.shape), " overflows 64 bits"));
  if (__builtin_mul_overflow(elements, dtype.bits, &bits))
    throw_corrupt(file, found.name, text("shape ", std::span(found.shape), " of ", dtype.name, " overflows 64 bits"));
  if (bits % 8 != 0)
    throw_corrupt(file, found.name,
                  text("shape ", std::span(found.shape), " of ", dtype.name, " takes ", bits, " bits, not a whole number of bytes"));
  return bits / 8;
}

std::string quoted(const std::string& word) {
  check(utf8_valid_until(word) == word.size(), "safetensors: names and metadata must be UTF-8, got ", word);
  std::string out;
  append_json_string(out, word);
  return out;
}

}  // namespace

std::string_view safetensors_name(DType dtype) { return std::ranges::find(kDTypes, std::optional(dtype), &DTypeRow::ours)->name; }

std::optional<DType> dtype_of_safetensors(std::string_view name) noexcept {
  const auto row = std::ranges::find(kDTypes, name, &DTypeRow::name);
  return row == std::end(kDTypes) ? std::nullopt : row->ours;
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
    check(names.insert(tensor.name).second, "safetensors: tensor names must be unique, got ", tensor.name, " twice");
    check(tensor.name != kMetadata, "safetensors: a tensor cannot be called ", kMetadata, ", which the format reserves");
    check(!tensor.shape.is_symbolic(), "safetensors: the shape of ", tensor.name, " must be fixed, got ", tensor.shape);
    tensor.offset = end;
    int64_t bytes = 0;
    check(!__builtin_mul_overflow(tensor.shape.elements(), bytes_of(tensor.dtype), &bytes) && !__builtin_add_overflow(end, bytes, &end),
          "safetensors: ", tensor.name, " ", tensor.shape, " makes the size of the file overflow 64 bits");
  }
  return {std::move(tensors), {}, std::move(metadata), end};
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
    throw_corrupt(file, "", text("gives its header ", length, " bytes, the format allows ", kMaxHeaderBytes, ": not a safetensors file"),
                  0);
  return static_cast<int64_t>(length);
}

SafetensorsHeader parse_header(std::string_view json, std::string_view file) {
  if (json.empty() || json.front() != '{') throw_corrupt(file, "", "the header does not start with {: not a safetensors file");
  HeaderText in(json, file);
  read_or_corrupt(file, in.tensor, [&] { in.read(); });

  // An empty tensor has the same offset as the next one and sorts before it.
  std::ranges::sort(in.tensors, [](const Found& a, const Found& b) {
    return std::tuple(a.offsets[0], a.offsets[1], std::string_view(a.name)) <
           std::tuple(b.offsets[0], b.offsets[1], std::string_view(b.name));
  });
  SafetensorsHeader header;
  header.metadata = std::move(in.metadata);
  for (Found& found : in.tensors) {
    const DTypeRow& dtype = dtype_of(found, file);
    const int64_t bytes = size_of(found, dtype, file), begin = found.offsets[0], end = found.offsets[1];
    if (end < begin || end - begin != bytes)
      throw_corrupt(file, found.name,
                    text("data_offsets ", std::span(found.offsets), " do not span the ", bytes, " bytes of ", found.dtype, " ",
                         std::span(found.shape)));
    if (begin != header.data_bytes)
      throw_corrupt(file, found.name,
                    text("starts at byte ", begin, " of the data, expected byte ", header.data_bytes, ": ",
                         begin < header.data_bytes ? "it overlaps another tensor" : "there is a gap before it"));
    header.data_bytes = end;
    if (dtype.ours && found.shape.size() <= size_t{kMaxDims})
      header.tensors.push_back({std::move(found.name), *dtype.ours, Shape(std::span(found.shape)), begin});
    else
      header.foreign.push_back({std::move(found.name), std::move(found.dtype), std::move(found.shape), begin, bytes});
  }
  return header;
}

}  // namespace st
