#include "exec/device_offer.h"

#include <exception>
#include <map>
#include <mutex>
#include <utility>

namespace st {
namespace {

/// The offers of this process.
struct Offers {
  std::mutex mutex;
  uint64_t last = 0;
  std::map<uint64_t, std::weak_ptr<DeviceOffer>> by_number;

  uint64_t next_number() {
    const std::lock_guard lock(mutex);
    return ++last;
  }
};

Offers& offers() {
  static Offers& all = *new Offers;  // for offers that end with the process
  return all;
}

}  // namespace

DeviceOffer::DeviceOffer(Backend& backend, int ranks)
    : is_written(backend.make_event()),
      is_read(backend.make_event()),
      backend_(backend),
      number_(offers().next_number()),
      readers_(static_cast<size_t>(ranks)) {}

std::shared_ptr<DeviceOffer> DeviceOffer::make(Backend& backend, int ranks) {
  std::shared_ptr<DeviceOffer> made(new DeviceOffer(backend, ranks));
  const std::lock_guard lock(offers().mutex);
  offers().by_number.emplace(made->number_, made);
  return made;
}

std::shared_ptr<DeviceOffer> DeviceOffer::find(uint64_t number) {
  const std::lock_guard lock(offers().mutex);
  const auto found = offers().by_number.find(number);
  return found == offers().by_number.end() ? nullptr : found->second.lock();
}

DeviceOffer::~DeviceOffer() {
  const std::lock_guard lock(offers().mutex);
  offers().by_number.erase(number_);
}

void DeviceOffer::open(std::span<const DevicePieces> parts) {
  const std::unique_lock lock(mutex_);
  parts_ = parts;
  is_withdrawn_ = false;
  for (auto& reader : readers_) reader.reset();
}

void DeviceOffer::withdraw() noexcept {
  {
    const std::unique_lock lock(mutex_);  // until those who are reading have said when they are done
    is_withdrawn_ = true;
    parts_ = {};
  }
  for (const auto& reader : readers_) {
    if (!reader) continue;
    try {
      reader->wait();
    } catch (const std::exception&) {  // of a device that has failed: nobody reads any more
      continue;
    }
  }
}

bool DeviceOffer::begin_reading(int rank, std::shared_ptr<Event> has_read) {
  mutex_.lock_shared();
  if (is_withdrawn_) {
    mutex_.unlock_shared();
    return false;
  }
  readers_[static_cast<size_t>(rank)] = std::move(has_read);
  return true;
}

}  // namespace st
