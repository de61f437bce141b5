#include "backend/reference/reduction.h"

namespace st::reference {

constinit const Kernel kernel_mean{[](const Call& call) {
  reduce(call, [](int64_t n, auto element) {
    double sum = 0;
    for (int64_t j = 0; j < n; ++j) sum += element(j);
    return sum / static_cast<double>(n);  // without elements: 0 / 0 = NaN, as in torch
  });
}};

}  // namespace st::reference
