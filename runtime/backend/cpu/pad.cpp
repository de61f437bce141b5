// y = zeros, x, zeros along axis
#include "backend/cpu/copy_blocks.h"

namespace st::cpu::ST_ISA {
namespace {

void run_pad(const Call& call) {
  const int32_t axis = normalize_axis("pad", call.attrs->integer("axis"), call.in[0].shape.rank());
  const AlongAxis x(call.in[0], axis), y(call.out[0], axis);
  const int64_t before = call.attrs->integer("before") * x.step, after = call.attrs->integer("after") * x.step;
  std::byte* const to = as<std::byte>(call.out[0]);
  call.workers->run_range(x.outer, std::max<int64_t>(1, 4 * kGrain / std::max<int64_t>(1, before + after)),
                          [&](int64_t begin, int64_t end) {
                            for (int64_t o = begin; o < end; ++o) {
                              std::memset(to + o * y.line, 0, static_cast<size_t>(before));
                              std::memset(to + o * y.line + before + x.line, 0, static_cast<size_t>(after));
                            }
                          });
  copy_blocks(*call.workers, as<const std::byte>(call.in[0]), x.line, to + before, y.line, x.line, x.outer);
}

}  // namespace

const Kernel kernel_pad = {run_pad};

}  // namespace st::cpu::ST_ISA
