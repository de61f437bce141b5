#include "backend/cpu/gemm/packing_order.h"

#include <cstdlib>
#include <string_view>

#include "base/os/cpu.h"

namespace st::cpu {

bool gains_on_the_way(int64_t row_bytes) {
  constexpr int64_t kLine = 64;
  static const char* const forced = std::getenv("SCALETRAIN_PACK_B");
  if (forced != nullptr) return std::string_view(forced) == "on_the_way";
  static const bool is_zen = os::cpu().vendor == "AuthenticAMD";
  return is_zen && row_bytes % kLine == 0;
}

}  // namespace st::cpu
