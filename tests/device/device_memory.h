// Memory of a device that is not there: the host cannot touch it, and what was freed is never handed out again.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/address.h"

namespace st::device_memory {

/// Zeroed, in whole pages, with a page behind it that nobody may touch. The host is killed by SIGSEGV when it follows the address.
Address allocate(int64_t bytes);
/// Kernels, too, are killed when they follow it from now on.
void free(Address place, int64_t bytes);
/// The same byte as kernels see it. Throws internal for an address that is not the device's; none stays none.
Address for_kernels(Address place);

}  // namespace st::device_memory
