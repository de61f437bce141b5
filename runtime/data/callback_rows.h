// Rows that a host's callback makes on demand.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "data/dataset.h"

namespace st {

/// Writes row rows[i] as the i-th row of each view. The views are in the order of the fields; none is null. Throws on failure.
using MakeRows = std::function<void(std::span<const int64_t> rows, std::span<const FieldView> out)>;

/// Calls `make` for one batch at a time, even when several trainers draw from it: other threads wait for their turn. No lock is held during
/// `make`, so it may use the library. It must not wait for its own rows, not even through other callbacks: that is refused with busy.
class CallbackRows final : public Dataset {
 public:
  CallbackRows(int64_t rows, std::vector<Field> fields, MakeRows make);

  int64_t rows() const override { return rows_; }
  std::span<const Field> fields() const override { return fields_; }
  const CallbackRows* maker() const override { return this; }
  /// The thread that is inside `make`; a default id: none.
  std::thread::id filler() const;
  bool calls_host() const override { return true; }

 protected:
  void fill_checked(std::span<const int64_t> rows, std::span<const FieldView> out) const override;

 private:
  class FillTurn;

  int64_t rows_;
  std::vector<Field> fields_;
  MakeRows make_;

  mutable std::mutex mutex_;
  mutable std::condition_variable free_;
  mutable std::thread::id filler_;  // under the mutex; default: no thread is inside `make`
};

}  // namespace st
