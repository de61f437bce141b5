// Bytes of a device as the host reads them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backend/backend.h"

namespace st {

/// In place where the host can read the device's memory, else a copy.
class HostBytes {
 public:
  HostBytes(Backend& backend, Address place, int64_t bytes) : data_(backend.in_host(place)) {
    if (backend.is_host_memory()) return;
    copy_.resize(static_cast<size_t>(bytes));
    backend.to_host(copy_.data(), place, bytes);
    data_ = copy_.data();
  }
  HostBytes(Backend& backend, const Operand& of) : HostBytes(backend, of.data, of.elements() * bytes_of(of.dtype)) {}
  HostBytes(const HostBytes&) = delete;
  HostBytes& operator=(const HostBytes&) = delete;

  template <class T = std::byte>
  const T* as() const {
    return reinterpret_cast<const T*>(data_);
  }

 private:
  std::vector<std::byte> copy_;
  const std::byte* data_;
};

}  // namespace st
