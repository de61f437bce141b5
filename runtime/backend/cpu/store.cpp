// slot = value
#include "backend/cpu/pointwise.h"

namespace st::cpu::ST_ISA {
namespace {

void run_store(const Call& call) {
  const auto* const from = as<const std::byte>(call.in[0]);
  auto* const to = as<std::byte>(call.writes[0]);
  const int64_t bytes = call.in[0].elements() * bytes_of(call.in[0].dtype);
  call.workers->run_range(bytes, 16 * kGrain,
                          [&](int64_t begin, int64_t end) { std::memcpy(to + begin, from + begin, static_cast<size_t>(end - begin)); });
}

}  // namespace

const Kernel kernel_store = {run_store};

}  // namespace st::cpu::ST_ISA
