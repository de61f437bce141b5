#include <functional>
#include <string>

#include "backend/reference/elementwise.h"

namespace st::reference {

constinit const Kernel kernel_compare{[](const Call& call) {
  const std::string& test = call.attrs->word("test");
  const auto with = [&](auto holds) { any_map2(call, [=]<class T>(T a, T b) { return holds(a, b) ? T{1} : T{0}; }); };
  if (test == "equal") return with(std::equal_to<>{});
  if (test == "not_equal") return with(std::not_equal_to<>{});
  if (test == "less") return with(std::less<>{});
  if (test == "less_equal") return with(std::less_equal<>{});
  if (test == "greater") return with(std::greater<>{});
  with(std::greater_equal<>{});  // ops.def allows no other word
}};

}  // namespace st::reference
