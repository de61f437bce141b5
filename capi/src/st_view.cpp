#include <array>
#include <cstring>

#include "guard.h"
#include "model/element_conversion.h"
#include "strided_range.h"
#include "views.h"

using namespace st;
using namespace st::capi;

namespace {

constexpr int64_t kChunk = 1024;  // elements

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class T>
void store(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

int64_t integer_at(DType dtype, const std::byte* from) {
  if (dtype == DType::i64) return load<int64_t>(from);
  if (dtype == DType::i32) return load<int32_t>(from);
  return load<uint8_t>(from);  // boolean too
}

/// The lowest and highest value of an integer dtype.
std::array<int64_t, 2> limits_of(DType dtype) {
  if (dtype == DType::i64) return {INT64_MIN, INT64_MAX};
  if (dtype == DType::i32) return {INT32_MIN, INT32_MAX};
  return {0, dtype == DType::u8 ? UINT8_MAX : 1};
}

void store_integer(DType dtype, std::byte* to, int64_t value) {
  if (dtype == DType::i64) return store(to, value);
  if (dtype == DType::i32) return store(to, static_cast<int32_t>(value));
  store(to, static_cast<uint8_t>(value));
}

void store_as_float(DType dtype, std::byte* to, int64_t value) {
  if (dtype == DType::f64) return store(to, static_cast<double>(value));
  const auto rounded = static_cast<float>(value);
  convert_element(DType::f32, reinterpret_cast<const std::byte*>(&rounded), dtype, to);
}

/// Converts element `place` of the whole array; the caller has checked that the dtypes are convertible.
void convert(DType from, const std::byte* source, DType to, std::byte* target, int64_t place) {
  if (from == to || is_floating(from)) return convert_element(from, source, to, target);
  const int64_t value = integer_at(from, source);
  if (is_floating(to)) return store_as_float(to, target, value);
  const auto [least, most] = limits_of(to);
  check(value >= least && value <= most, "st_view_convert: element ", place, " is ", value, "; ", to, " holds ", least, " to ", most);
  store_integer(to, target, value);
}

}  // namespace

st_status st_view_convert(const st_view* from, const st_view* to) {
  return guard([&] {
    constexpr const char* kCall = "st_view_convert";
    const HostView source = read_view("from", from, kCall), target = written_view("to", to, kCall);
    check(source.shape == target.shape, kCall, ": from has shape ", source.shape, ", to has ", target.shape, "; give both the same dims");
    require(!is_floating(source.dtype) || is_floating(target.dtype), Code::unsupported, kCall, ": ", source.dtype, " is not converted to ",
            target.dtype, "; round it first in the way that suits your data");
    require_nested(source, kCall);
    check(!share_memory(source, target), kCall, ": from and to share memory; give each its own");
    const int64_t width = bytes_of(source.dtype), target_width = bytes_of(target.dtype), elements = source.shape.elements();
    std::array<std::byte, 8 * kChunk> read{}, made{};
    for (int64_t first = 0; first < elements; first += kChunk) {
      const int64_t count = std::min(kChunk, elements - first);
      copy_range(source, first * width, std::span(read).first(static_cast<size_t>(count * width)));
      for (int64_t i = 0; i < count; ++i)
        convert(source.dtype, read.data() + i * width, target.dtype, made.data() + i * target_width, first + i);
      fill_range(target, first, target.dtype, std::span(made).first(static_cast<size_t>(count * target_width)));
    }
  });
}
