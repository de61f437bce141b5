#include "data/dataset.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace st {

namespace {

void check_field(const Field& field, std::span<const Field> before, int64_t rows) {
  check(!field.name.empty(), "data: a field has an empty name");
  check(std::ranges::find(before, field.name, &Field::name) == before.end(), "data: field \"", field.name, "\" is given twice");
  check(std::ranges::none_of(field.shape, [](int64_t dim) { return dim < 0; }), "data: field \"", field.name, "\": a row's shape ",
        field.shape, " has a dimension below 0");
  const int64_t elements = field.shape.elements(), bytes = bytes_of(field.dtype);
  check(elements <= INT64_MAX / bytes && (elements == 0 || rows <= INT64_MAX / (elements * bytes)), "data: field \"", field.name,
        "\": ", rows, " rows of ", elements, " ", field.dtype, " do not fit 64 bits");
}

}  // namespace

void check_fields(std::span<const Field> fields, int64_t rows) {
  check(!fields.empty(), "data: at least one field is needed");
  for (size_t i = 0; i < fields.size(); ++i) about_tensor(fields[i].name, [&] { check_field(fields[i], fields.first(i), rows); });
}

void Dataset::fill(std::span<const int64_t> rows, std::span<const FieldView> out) const {
  const auto wanted = fields();
  check(out.size() == wanted.size(), "data: expected a view for each of ", wanted.size(), " fields, got ", out.size());
  const auto n = static_cast<int64_t>(rows.size());
  for (size_t i = 0; i < out.size(); ++i)
    about_tensor(wanted[i].name, [&] {
      check(!out[i].data || out[i].bytes >= n * wanted[i].row_bytes(), "data: field \"", wanted[i].name, "\": ", n, " rows of ",
            wanted[i].row_bytes(), " bytes do not fit ", out[i].bytes);
    });
  for (const int64_t row : rows) check(row >= 0 && row < this->rows(), "data: row must be 0 to ", this->rows() - 1, ", got ", row);
  fill_checked(rows, out);
}

TokenWindows::TokenWindows(std::shared_ptr<const TokenSource> source, TokenRange range, int64_t context)
    : source_(std::move(source)),
      range_(range),
      context_(context),
      fields_({{"tokens", DType::i32, Shape{context}}, {"targets", DType::i32, Shape{context}}}) {
  check(context >= 1, "data: the context must be 1 or more tokens, got ", context);
  check(range.first >= 0 && range.count >= 0 && range.count <= source_->size() - range.first, "data: tokens [", range.first, ", ",
        range.first, " + ", range.count, ") are outside the ", source_->size(), " tokens of ", source_->path());
}

void TokenWindows::fill_checked(std::span<const int64_t> rows, std::span<const FieldView> out) const {
  for (size_t shift = 0; shift < 2; ++shift) {
    auto* at = reinterpret_cast<int32_t*>(out[shift].data);
    if (!at) continue;
    for (const int64_t row : rows) {
      source_->read(range_.first + row * context_ + static_cast<int64_t>(shift), {at, static_cast<size_t>(context_)});
      at += context_;
    }
  }
}

HostArrays::HostArrays(int64_t rows, std::vector<HostArray> arrays, std::shared_ptr<void> owner) : rows_(rows), owner_(std::move(owner)) {
  check(rows >= 1, "data: the rows of an array dataset must be 1 or more, got ", rows);
  for (auto& array : arrays) {
    data_.push_back(static_cast<const std::byte*>(array.data));
    fields_.push_back(std::move(array.field));
  }
  check_fields(fields_, rows);
  for (size_t i = 0; i < fields_.size(); ++i)
    about_tensor(fields_[i].name,
                 [&] { check(data_[i] != nullptr || fields_[i].row_bytes() == 0, "data: array \"", fields_[i].name, "\" is null"); });
}

void HostArrays::fill_checked(std::span<const int64_t> rows, std::span<const FieldView> out) const {
  for (size_t i = 0; i < out.size(); ++i) {
    std::byte* at = out[i].data;
    const int64_t bytes = fields_[i].row_bytes();
    if (!at || bytes == 0) continue;
    for (const int64_t row : rows) {
      std::memcpy(at, data_[i] + row * bytes, static_cast<size_t>(bytes));
      at += bytes;
    }
  }
}

}  // namespace st
