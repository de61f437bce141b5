#include "train/run_digests.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/digest.h"
#include "ir/print.h"

namespace st {

std::string graph_digest(const Program& model) {
  Digest digest;
  digest.update(print(model));
  return digest.hex();
}

std::string data_digest(const Dataset& data) {
  constexpr int64_t kLookedAt = 16;
  if (data.maker() != nullptr || data.calls_host()) return "";
  Digest digest;
  std::vector<std::vector<std::byte>> room;
  std::vector<FieldView> views;
  for (const Field& field : data.fields()) {
    room.emplace_back(static_cast<size_t>(field.row_bytes()));
    views.push_back({room.back().data(), field.row_bytes()});
  }
  const int64_t last = data.rows() - 1, count = std::min(kLookedAt, data.rows());
  for (int64_t i = 0; i < count; ++i) {
    // In two parts: rows times 15 may be more than 64 bits.
    const int64_t row = count == 1 ? 0 : last / (count - 1) * i + last % (count - 1) * i / (count - 1);
    data.fill({&row, 1}, views);
    for (const auto& bytes : room) digest.update(bytes);
  }
  return digest.hex();
}

}  // namespace st
