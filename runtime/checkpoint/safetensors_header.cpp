#include "checkpoint/safetensors_header.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/json_line.h"
#include "base/utf8.h"

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

[[noreturn]] void refuse(std::string_view file, std::string_view tensor, std::string_view message) {
  Error error(Code::corrupt, text(file, tensor.empty() ? "" : ": tensor ", tensor, ": ", message));
  error.place.file = file;
  error.place.tensor = tensor;
  throw error;
}

struct Found {  // a tensor as the file tells it
  std::string name, dtype;
  std::vector<int64_t> shape, offsets;
  bool has_dtype = false, has_shape = false, has_offsets = false;
};

/// Takes the parser's events one by one and refuses what is not a header as soon as it comes: nothing deep or large is ever built.
class HeaderEvents : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit HeaderEvents(std::string_view file) : file_(file) {}

  std::vector<Found> tensors;
  Metadata metadata;

  bool null() override { unexpected("null"); }
  bool boolean(bool) override { unexpected("a boolean"); }
  bool number_float(double, const std::string& word) override { unexpected("the number " + word); }
  bool binary(nlohmann::json::binary_t&) override { unexpected("binary data"); }
  bool number_integer(int64_t value) override { unexpected(text("the number ", value)); }

  bool number_unsigned(uint64_t value) override {
    if (at_ != At::shape && at_ != At::offsets) unexpected(text("the number ", value));
    if (value > INT64_MAX) refuse(file_, name_, text("the number ", value, " is too large"));
    auto& numbers = at_ == At::shape ? tensors.back().shape : tensors.back().offsets;
    if (numbers.size() == (at_ == At::shape ? size_t{kMaxDims} : size_t{2}))
      refuse(file_, name_, at_ == At::shape ? text("has more than ", kMaxDims, " dimensions") : "data_offsets has more than two numbers");
    numbers.push_back(static_cast<int64_t>(value));
    return true;
  }

  bool string(std::string& value) override {
    if (at_ == At::metadata) {
      if (!metadata.emplace(key_, value).second) refuse(file_, "", "the metadata key " + key_ + " stands there twice");
    } else if (at_ == At::tensor && key_ == "dtype") {
      if (std::exchange(tensors.back().has_dtype, true)) twice();
      tensors.back().dtype = value;
    } else {
      unexpected("text");
    }
    return true;
  }

  bool start_object(size_t) override {
    if (at_ == At::outside) {
      at_ = At::top;
    } else if (at_ == At::top && key_ == kMetadata) {
      at_ = At::metadata;
    } else if (at_ == At::top) {
      at_ = At::tensor;
      name_ = key_;
      tensors.push_back({name_, "", {}, {}});
    } else {
      unexpected("an object");
    }
    return true;
  }

  bool end_object() override {
    if (at_ == At::tensor) {
      const Found& t = tensors.back();
      if (!t.has_dtype || !t.has_shape || !t.has_offsets || t.offsets.size() != 2)
        refuse(file_, name_, "needs dtype, shape and two data_offsets");
      name_.clear();
    }
    at_ = at_ == At::top ? At::outside : At::top;
    return true;
  }

  bool start_array(size_t) override {
    if (at_ != At::tensor || (key_ != "shape" && key_ != "data_offsets")) unexpected("a list");
    const bool shape = key_ == "shape";
    if (std::exchange(shape ? tensors.back().has_shape : tensors.back().has_offsets, true)) twice();
    at_ = shape ? At::shape : At::offsets;
    return true;
  }

  bool end_array() override {
    at_ = At::tensor;
    return true;
  }

  bool key(std::string& value) override {
    key_ = value;
    if (at_ == At::top && !keys_.insert(value).second) refuse(file_, value, "stands there twice");
    if (at_ == At::tensor && value != "dtype" && value != "shape" && value != "data_offsets")
      refuse(file_, name_, "has an unknown key " + value);
    return true;
  }

  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception&) override {
    refuse(file_, name_, text("the header is not valid JSON at byte ", position));
  }

 private:
  enum class At { outside, top, metadata, tensor, shape, offsets };

  [[noreturn]] void unexpected(const std::string& what) { refuse(file_, name_, "the header has " + what + " where it does not belong"); }
  [[noreturn]] void twice() { refuse(file_, name_, "has the key " + key_ + " twice"); }

  std::string file_, name_, key_;
  std::set<std::string> keys_;
  At at_ = At::outside;
};

DType dtype_of(const Found& found, std::string_view file) {
  if (const auto dtype = dtype_of_safetensors(found.dtype)) return *dtype;
  std::string known;
  for (const auto& row : kDTypes) known += (known.empty() ? "" : ", ") + std::string(row.second);
  refuse(file, found.name, text("unknown dtype ", found.dtype, "; there are: ", known));
}

TensorRecord record_of(const Found& found, std::string_view file) {
  TensorRecord record{found.name, dtype_of(found, file), {}, found.offsets[0]};
  int64_t bytes = bytes_of(record.dtype);
  for (const int64_t dim : found.shape)
    if (__builtin_mul_overflow(bytes, dim, &bytes)) refuse(file, found.name, text("shape ", std::span(found.shape), " overflows 64 bits"));
  record.shape = Shape(std::span(found.shape));
  const auto [begin, end] = std::pair{found.offsets[0], found.offsets[1]};
  if (end < begin || end - begin != bytes)
    refuse(file, found.name,
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

SafetensorsHeader parse_header(std::string_view json, std::string_view file) {
  if (json.empty() || json.front() != '{') refuse(file, "", "the header does not start with {: not a safetensors file");
  HeaderEvents events{file};
  nlohmann::json::sax_parse(json.begin(), json.end(), &events);

  SafetensorsHeader header;
  header.metadata = std::move(events.metadata);
  for (const Found& found : events.tensors) header.tensors.push_back(record_of(found, file));
  // Empty tensors share their offset with the next one: they come first.
  std::sort(header.tensors.begin(), header.tensors.end(), [](const TensorRecord& a, const TensorRecord& b) {
    return std::tuple(a.offset, a.bytes(), std::string_view(a.name)) < std::tuple(b.offset, b.bytes(), std::string_view(b.name));
  });
  for (const TensorRecord& tensor : header.tensors) {
    if (tensor.offset != header.data_bytes)
      refuse(file, tensor.name,
             text("starts at byte ", tensor.offset, " of the data where byte ", header.data_bytes,
                  " is next: ", tensor.offset < header.data_bytes ? "it overlaps another" : "there is a gap before it"));
    header.data_bytes += tensor.bytes();  // cannot overflow: offset + bytes was an int64 in the file
  }
  return header;
}

}  // namespace st
