// Rows of named fields, the source of a trainer's batches. A dataset knows neither order nor batches (stream.h, prefetch.h).
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

/// `shape` is the shape of one row: {context} for tokens, {} for a number.
struct Field {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;

  int64_t row_bytes() const { return shape.elements() * bytes_of(dtype); }
};

/// A caller's buffer for a field's values, row after row without gaps. Null: skip this field.
struct FieldView {
  std::byte* data = nullptr;
  int64_t bytes = 0;
};

/// Refuses empty or duplicate field names, negative dimensions, and a total of elements or bytes over 64 bits; names the field.
void check_fields(std::span<const Field> fields, int64_t rows);

class CallbackRows;

class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual int64_t rows() const = 0;
  virtual std::span<const Field> fields() const = 0;

  /// Writes the given rows into out[i] for fields()[i], in the order of `rows`; a row may occur twice. Checks rows and buffer sizes; throws
  /// on bad data. Safe to call from several threads: two trainers may draw from one dataset.
  void fill(std::span<const int64_t> rows, std::span<const FieldView> out) const;

  /// The callback that makes these rows; null: they exist already. A thread that waits for rows checks for a deadlock (row_wait.h).
  virtual const CallbackRows* maker() const { return nullptr; }

  /// Whether filling calls the host, which may take any time. Then fill on another thread, or the wait cannot be cancelled.
  virtual bool calls_host() const { return false; }

 protected:
  /// Like fill(), with rows and buffers already checked.
  virtual void fill_checked(std::span<const int64_t> rows, std::span<const FieldView> out) const = 0;
};

/// Windows of a range of tokens: "tokens" i32 [context] and "targets" i32 [context], the same window shifted by one token.
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

/// An array of the host: rows x row_bytes() bytes at `data`, row after row, of any alignment.
struct HostArray {
  Field field;
  const void* data = nullptr;
};

/// Arrays of the host, read in place. They must not change while `owner` lives; the dataset holds it.
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
