#include "data/callback_rows.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "data/row_wait.h"

namespace st {
/// Holds the exclusive right to call `make`.
class CallbackRows::FillTurn {
 public:
  explicit FillTurn(const CallbackRows& data) : data_(data) {
    const RowWait wait(&data_);
    std::unique_lock lock(data_.mutex_);
    while (data_.filler_ != std::thread::id()) {
      lock.unlock();  // the check for a deadlock covers all datasets
      require(!wait.is_for_itself(), Code::busy,
              "data: a row callback requested rows of its own dataset, or rows that wait for them; use another dataset inside it");
      lock.lock();
      data_.free_.wait_for(lock, RowWait::kLook, [&] { return data_.filler_ == std::thread::id(); });
    }
    data_.filler_ = std::this_thread::get_id();
  }
  ~FillTurn() {
    {
      const std::lock_guard lock(data_.mutex_);
      data_.filler_ = std::thread::id();
    }
    data_.free_.notify_one();
  }
  FillTurn(const FillTurn&) = delete;
  FillTurn& operator=(const FillTurn&) = delete;

 private:
  const CallbackRows& data_;
};

CallbackRows::CallbackRows(int64_t rows, std::vector<Field> fields, MakeRows make)
    : rows_(rows), fields_(std::move(fields)), make_(std::move(make)) {
  check(rows >= 1, "data: the rows of a callback dataset must be 1 or more, got ", rows);
  check(make_ != nullptr, "data: the callback must not be null");
  check_fields(fields_, rows);
}

std::thread::id CallbackRows::filler() const {
  const std::lock_guard lock(mutex_);
  return filler_;
}

void CallbackRows::fill_checked(std::span<const int64_t> rows, std::span<const FieldView> out) const {
  for (size_t i = 0; i < out.size(); ++i)
    check(out[i].data != nullptr || out[i].bytes == 0, "data: field \"", fields_[i].name,
          "\" has no buffer, but a callback fills every field");
  const FillTurn turn(*this);
  make_(rows, out);
}

}  // namespace st
