#include <limits>

#include "backend/reference/reduction.h"

namespace st::reference {

constinit const Kernel kernel_max{[](const Call& call) {
  reduce(call, [](int64_t n, auto element) {
    double largest = -std::numeric_limits<double>::infinity();
    for (int64_t j = 0; j < n; ++j) {
      const double x = element(j);
      if (std::isnan(x)) return x;  // NaN is the largest
      if (x > largest) largest = x;
    }
    return largest;
  });
}};

}  // namespace st::reference
