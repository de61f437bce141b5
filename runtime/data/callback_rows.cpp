#include "data/callback_rows.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "data/row_wait.h"

namespace st {
/// Being the one thread inside `make`.
class CallbackRows::Turn {
 public:
  explicit Turn(const CallbackRows& data) : data_(data) {
    const RowWait wait(&data_);
    std::unique_lock lock(data_.mutex_);
    while (data_.filler_ != std::thread::id()) {
      lock.unlock();  // a circle is looked for over all data
      require(!wait.is_for_itself(), Code::busy,
              "data: the callback that makes rows asked for rows of its own data, or for some that wait for them; it may use other data");
      lock.lock();
      data_.free_.wait_for(lock, RowWait::kLook, [&] { return data_.filler_ == std::thread::id(); });
    }
    data_.filler_ = std::this_thread::get_id();
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

std::thread::id CallbackRows::filler() const {
  const std::lock_guard lock(mutex_);
  return filler_;
}

void CallbackRows::fill_checked(std::span<const int64_t> rows, std::span<const FieldView> out) const {
  for (size_t i = 0; i < out.size(); ++i)
    check(out[i].data != nullptr || out[i].bytes == 0, "data: field \"", fields_[i].name,
          "\" has no room, but a callback makes whole rows");
  const Turn turn(*this);
  make_(rows, out);
}

}  // namespace st
