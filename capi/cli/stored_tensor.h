// A tensor in a file that is in memory: what an import saves and an export writes.
#pragma once

#include <scaletrain/view.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cli {

struct StoredTensor {
  std::string name;
  st_dtype dtype = ST_F32;
  std::vector<int64_t> dims, strides;  // strides in elements; empty: contiguous row-major
  std::string_view bytes;              // start at its first element; owned by the file

  int64_t elements() const {
    int64_t product = 1;
    for (const int64_t dim : dims) product *= dim;
    return product;
  }
  /// Borrows dims, strides and bytes.
  st_view view() const {
    return {dtype,
            static_cast<int32_t>(dims.size()),
            dims.data(),
            strides.empty() ? nullptr : strides.data(),
            const_cast<char*>(bytes.data()),
            std::ssize(bytes),
            0,
            0};
  }
};

/// Row-major index of the first NaN, -1: none.
int64_t first_nan(const StoredTensor& tensor);

}  // namespace cli
