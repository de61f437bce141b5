#include "stored_tensor.h"

#include <cmath>
#include <cstring>

namespace cli {
namespace {

/// bf16 and f16: a NaN has bits above those of infinity.
bool is_nan(st_dtype dtype, const char* element) {
  const auto read = [&]<class T>(T value) {
    std::memcpy(&value, element, sizeof value);
    return value;
  };
  switch (dtype) {
    case ST_F32:
      return std::isnan(read(float()));
    case ST_F64:
      return std::isnan(read(double()));
    case ST_BF16:
      return (read(uint16_t()) & 0x7FFF) > 0x7F80;
    case ST_F16:
      return (read(uint16_t()) & 0x7FFF) > 0x7C00;
    default:
      return false;
  }
}

}  // namespace

int64_t first_nan(const StoredTensor& tensor) {
  if (tensor.dtype != ST_F32 && tensor.dtype != ST_F64 && tensor.dtype != ST_BF16 && tensor.dtype != ST_F16) return -1;
  const int64_t width = tensor.dtype == ST_F64 ? 8 : tensor.dtype == ST_F32 ? 4 : 2, count = tensor.elements();
  std::vector<int64_t> at(tensor.dims.size());
  int64_t place = 0;  // in elements
  for (int64_t i = 0; i < count; ++i) {
    if (is_nan(tensor.dtype, tensor.bytes.data() + place * width)) return i;
    if (tensor.strides.empty()) {
      ++place;
      continue;
    }
    for (size_t d = at.size(); d-- > 0;) {
      place += tensor.strides[d];
      if (++at[d] < tensor.dims[d]) break;
      place -= tensor.strides[d] * tensor.dims[d];
      at[d] = 0;
    }
  }
  return -1;
}

}  // namespace cli
