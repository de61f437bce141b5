#include "comm/hand_over.h"

#include <algorithm>
#include <utility>

#include "base/vector_copy.h"

namespace st {

void HandOver::make_room(Queue& queue) const {
  if (queue.added - copied_ < std::ssize(queue.ring)) return;
  std::vector<Range> more(2 * queue.ring.size());
  for (int64_t n = copied_ + 1; n <= queue.added; ++n) more[static_cast<size_t>(n) % more.size()] = at(queue, n);
  queue.ring = std::move(more);
}

void HandOver::add(Side side, void* data, int64_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    if (has_ended()) return;
    Queue& own = of(side);
    make_room(own);
    own.ring[static_cast<size_t>(++own.added) % own.ring.size()] = {static_cast<std::byte*>(data), bytes};
    for (int64_t n = copied_ + 1; n <= std::min(sent_.added, received_.added); ++n) {
      const Range &from = at(sent_, n), &to = at(received_, n);
      if (from.bytes != to.bytes) {
        differs_ = true;
        has_ended_ = true;
        break;
      }
      vector_copy(to.data, from.data, static_cast<size_t>(to.bytes));
      copied_.store(n, std::memory_order_release);
    }
  }
  of(side == Side::sends ? Side::receives : Side::sends).bell.ring();
}

bool HandOver::wait(Side side, int64_t message, double seconds) {
  Bell& bell = of(side).bell;
  const uint32_t heard = bell.rings();
  const auto is_there = [&] { return copied_.load(std::memory_order_acquire) >= message; };
  if (is_there() || has_ended()) return is_there();
  bell.wait(heard, seconds, spins_);
  return is_there();
}

void HandOver::end() noexcept {
  {
    const std::lock_guard lock(mutex_);  // until a copy is done
    has_ended_ = true;
  }
  sent_.bell.ring();
  received_.bell.ring();
}

}  // namespace st
