// The arrays of a host with its own training loop, and views of them.
#pragma once

#include <scaletrain/scaletrain.h>

#include <cstdint>
#include <vector>

namespace st::test {

struct FloatArray {
  std::vector<float> values;
  int64_t dims[1] = {static_cast<int64_t>(values.size())};

  st_view view() { return {ST_F32, 1, dims, nullptr, values.data(), dims[0] * 4}; }
};

}  // namespace st::test
