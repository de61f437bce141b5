#include <functional>

#include "backend/reference/elementwise.h"

namespace st::reference {

constinit const Kernel kernel_add{
    [](const Call& call) { any_map2(call, []<class T>(T a, T b) { return wrapping(a, b, std::plus<>{}); }); }};

}  // namespace st::reference
