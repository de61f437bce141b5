// Rows of named fields: what a Trainer draws its batches from. A dataset knows nothing of order or batches (stream.h, prefetch.h).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/shape.h"
#include "data/holdout.h"
#include "data/tokens.h"

namespace st {

/// `shape` is of one row: {context} for tokens, {} for a number.
struct Field {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;

  int64_t row_bytes() const { return shape.elements() * bytes_of(dtype); }
};

/// Room for a field's values, row after row without gaps. The caller owns it. Null: this field is not wanted.
struct FieldView {
  std::byte* data = nullptr;
  int64_t bytes = 0;
};

/// Refuses fields without a name or with the same one, dimensions below 0, and `rows` of them that 64 bits cannot count; names the field.
void check_fields(std::span<const Field> fields, int64_t rows);

class CallbackRows;

class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual int64_t rows() const = 0;
  virtual std::span<const Field> fields() const = 0;

  /// Writes the rows asked for into out[i], which is for fields()[i], in the order of `rows`; a row may occur twice. Throws what went wrong
  /// with the data; checks rows and room. May be called by several threads: two trainers may draw from one dataset.
  void fill(std::span<const int64_t> rows, std::span<const FieldView> out) const;

  /// What asks the host for these rows; null: they are there. Who waits for rows looks whether it waits for itself (row_wait.h).
  virtual const CallbackRows* maker() const { return nullptr; }

  /// Rows of the host's making, who may take any time: who needs them is to have them filled on another thread, or cannot be cancelled.
  virtual bool may_be_late() const { return false; }

 protected:
  /// The same, for rows in range and views with room enough.
  virtual void fill_checked(std::span<const int64_t> rows, std::span<const FieldView> out) const = 0;
};

/// Windows of a range of tokens: "tokens" i32 [context] and "targets" i32 [context], the same one further on.
class TokenWindows final : public Dataset {
 public:
  TokenWindows(std::shared_ptr<const TokenSource> source, TokenRange range, int64_t context);

  int64_t rows() const override { return range_.windows(context_); }
  std::span<const Field> fields() const override { return fields_; }

 protected:
  void fill_checked(std::span<const int64_t> rows, std::span<const FieldView> out) const override;

 private:
  std::shared_ptr<const TokenSource> source_;
  TokenRange range_;
  int64_t context_;
  std::vector<Field> fields_;
};

/// What the host holds already. `data` has rows x row_bytes() bytes, row after row, and needs no alignment.
struct HostArray {
  Field field;
  const void* data = nullptr;
};

/// Arrays of the host, read in place. They must stay as they are while `owner` lives, which the dataset keeps.
class HostArrays final : public Dataset {
 public:
  HostArrays(int64_t rows, std::vector<HostArray> arrays, std::shared_ptr<void> owner = nullptr);

  int64_t rows() const override { return rows_; }
  std::span<const Field> fields() const override { return fields_; }

 protected:
  void fill_checked(std::span<const int64_t> rows, std::span<const FieldView> out) const override;

 private:
  int64_t rows_;
  std::vector<Field> fields_;
  std::vector<const std::byte*> data_;
  std::shared_ptr<void> owner_;
};

}  // namespace st
