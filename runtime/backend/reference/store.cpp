#include <cstring>

#include "backend/reference/reference_kernels.h"

namespace st::reference {

constinit const Kernel kernel_store{[](const Call& call) {
  const Operand &value = call.in[0], &slot = call.writes[0];
  std::memmove(as<std::byte>(slot), as<std::byte>(value), static_cast<size_t>(value.elements() * bytes_of(value.dtype)));
}};

}  // namespace st::reference
