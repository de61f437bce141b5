// Bytes of a device as the host reads them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "base/error.h"

namespace st {

/// The place as the host sees it, of what a call gives in place. Throws unsupported where it cannot read the device's memory. `what` opens
/// the message: "st_tensor_create: the tensor's memory".
inline std::byte* in_place(const Backend& backend, Address place, std::string_view what) {
  require(backend.is_host_memory(), Code::unsupported, what, " is given in place, but ", backend.name(),
          " has memory of its own, which the host cannot read; use the host's arrays, which calls copy");
  return backend.in_host(place);
}

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
