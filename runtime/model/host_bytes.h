// Bytes of a device as the host reads them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "base/error.h"

namespace st {

/// Throws unsupported where the host cannot read the backend's memory in place. `what` opens the message: "st_tensor_create: the tensor's
/// memory is given".
inline void require_in_place(const Backend& backend, std::string_view what) {
  require(backend.is_host_memory(), Code::unsupported, what, " in place, but ", backend.name(),
          " has memory of its own, which the host cannot read; use a context of the cpu");
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
