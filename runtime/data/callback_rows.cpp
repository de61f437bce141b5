#include "data/callback_rows.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace st {

/// Being the one thread inside `make`.
class CallbackRows::Turn {
 public:
  explicit Turn(const CallbackRows& data) : data_(data) {
    const auto here = std::this_thread::get_id();
    std::unique_lock lock(data_.mutex_);
    require(data_.filler_ != here, Code::busy, "data: the callback that makes rows asked for rows of its own data; it may use other data");
    data_.free_.wait(lock, [&] { return data_.filler_ == std::thread::id(); });
    data_.filler_ = here;
  }
  ~Turn() {
    {
      const std::lock_guard lock(data_.mutex_);
      data_.filler_ = std::thread::id();
    }
    data_.free_.notify_one();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  const CallbackRows& data_;
};

CallbackRows::CallbackRows(int64_t rows, std::vector<Field> fields, MakeRows make)
    : rows_(rows), fields_(std::move(fields)), make_(std::move(make)) {
  check(rows >= 1, "data: a callback needs rows to make, got ", rows);
  check(make_ != nullptr, "data: no callback was given");
  check_fields(fields_, rows);
}

bool CallbackRows::is_filling_here() const {
  const std::lock_guard lock(mutex_);
  return filler_ == std::this_thread::get_id();
}

void CallbackRows::fill_checked(std::span<const int64_t> rows, std::span<const FieldView> out) const {
  for (size_t i = 0; i < out.size(); ++i)
    check(out[i].data != nullptr || out[i].bytes == 0, "data: field \"", fields_[i].name,
          "\" has no room, but a callback makes whole rows");
  const Turn turn(*this);
  make_(rows, out);
}

}  // namespace st
