// A batch that a host gives, made of rows of a dataset.
#pragma once

#include <vector>

#include "base/host_view.h"
#include "data/dataset.h"

namespace st {

/// In the given order.
struct Rows {
  std::vector<Field> fields;  // must outlive the dataset, which borrows the names
  std::vector<std::vector<std::byte>> memory;
  std::vector<HostView> views;
  Rows(const Rows&) = delete;
  Rows(const Dataset& data, const std::vector<int64_t>& rows) : fields(data.fields().begin(), data.fields().end()) {
    std::vector<FieldView> room;
    for (const Field& field : fields) {
      memory.emplace_back(static_cast<size_t>(field.row_bytes()) * rows.size());
      room.push_back({memory.back().data(), static_cast<int64_t>(memory.back().size())});
    }
    data.fill(rows, room);
    for (size_t i = 0; i < room.size(); ++i) {
      Shape shape{static_cast<int64_t>(rows.size())};
      for (const int64_t dim : fields[i].shape) shape.push_back(dim);
      views.push_back(plain_view(fields[i].name, fields[i].dtype, shape, room[i].data));
    }
  }
};

}  // namespace st
