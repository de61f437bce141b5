// Rows that the host makes when they are wanted.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "data/dataset.h"

namespace st {

/// Writes the i-th row asked for as the i-th row of each view; the views are those of the fields, in their order, and none is null. Throws
/// what went wrong.
using MakeRows = std::function<void(std::span<const int64_t> rows, std::span<const FieldView> out)>;

/// Asks `make` for one batch at a time, however many trainers draw from it: threads that come meanwhile wait for their turn, and no lock is
/// held while `make` runs, so it may use the library. What it must not do is wait for rows of its own, be it through other callbacks: that
/// is refused with busy.
class CallbackRows final : public Dataset {
 public:
  CallbackRows(int64_t rows, std::vector<Field> fields, MakeRows make);

  int64_t rows() const override { return rows_; }
  std::span<const Field> fields() const override { return fields_; }
  const CallbackRows* maker() const override { return this; }
  /// The thread that is inside `make`; none: nobody is.
  std::thread::id filler() const;
  bool may_be_late() const override { return true; }

 protected:
  void fill_checked(std::span<const int64_t> rows, std::span<const FieldView> out) const override;

 private:
  class Turn;

  int64_t rows_;
  std::vector<Field> fields_;
  MakeRows make_;

  mutable std::mutex mutex_;
  mutable std::condition_variable free_;
  mutable std::thread::id filler_;  // under the mutex; none: nobody is inside `make`
};

}  // namespace st
