#include "checkpoint/utc_time.h"

#include <array>
#include <ctime>

namespace st {

std::string utc_time() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 32> out{};
  return {out.data(), std::strftime(out.data(), out.size(), "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

}  // namespace st
