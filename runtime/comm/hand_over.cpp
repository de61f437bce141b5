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

void HandOver::put(Queue& queue, const Range& range) {
  make_room(queue);
  queue.ring[static_cast<size_t>(++queue.added) % queue.ring.size()] = range;
}

void HandOver::differ() {
  differs_ = true;
  has_ended_ = true;
}

void HandOver::add(Side side, void* data, int64_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    if (has_ended()) return;
    put(of(side), {static_cast<std::byte*>(data), bytes});
    for (int64_t n = copied_ + 1; n <= std::min(sent_.added, received_.added); ++n) {
      const Range &from = at(sent_, n), &to = at(received_, n);
      if (from.bytes != to.bytes || from.offer) {
        differ();
        break;
      }
      vector_copy(to.data, from.data, static_cast<size_t>(to.bytes));
      copied_.store(n, std::memory_order_release);
    }
  }
  of(side == Side::sends ? Side::receives : Side::sends).bell.ring();
}

void HandOver::offer(uint64_t number, int64_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    if (has_ended()) return;
    put(sent_, {nullptr, bytes, number});
    if (received_.added > copied_) differ();
  }
  received_.bell.ring();
}

std::optional<uint64_t> HandOver::offered(int64_t bytes, double seconds) {
  const uint32_t heard = received_.bell.rings();
  if (const auto number = next_offer(bytes); number || has_ended()) return number;
  received_.bell.wait(heard, seconds, spins_);
  return next_offer(bytes);
}

std::optional<uint64_t> HandOver::next_offer(int64_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    const int64_t next = copied_ + 1;
    if (has_ended() || next > sent_.added) return std::nullopt;
    const Range& from = at(sent_, next);
    if (from.offer && from.bytes == bytes) return from.offer;
    differ();
  }
  sent_.bell.ring();
  return std::nullopt;
}

void HandOver::taken() {
  {
    const std::lock_guard lock(mutex_);
    if (has_ended()) return;
    received_.added = copied_ + 1;
    copied_.store(received_.added, std::memory_order_release);
  }
  sent_.bell.ring();
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
