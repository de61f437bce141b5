#include "gradient_views.h"

#include "base/error.h"
#include "views.h"

namespace st::capi {
namespace {

HostView gradient_of(const st_view& view, std::string_view name, const char* call) {
  const HostView ours = written_view(name, &view, call);
  about_tensor(name, [&] {
    check(reinterpret_cast<uintptr_t>(ours.data) % static_cast<uintptr_t>(bytes_of(ours.dtype)) == 0, call, ": \"", name, "\" of dtype ",
          ours.dtype, " is not aligned to ", bytes_of(ours.dtype), " bytes");
  });
  return ours;
}

}  // namespace

void check_gradient_count(int64_t n, const st_view* gradients, const char* call) {
  check(n >= 0 && n <= kMaxGradients, call, ": n is ", n, "; it must be 0 to ", kMaxGradients);
  check(n == 0 || gradients != nullptr, call, ": gradients is NULL with n = ", n, " of them");
}

std::span<const HostView> GradientViews::take(int64_t n, const st_view* gradients, const char* call) {
  check_gradient_count(n, gradients, call);
  while (std::ssize(names_) < n) names_.push_back(text("gradient ", std::ssize(names_)));
  views_.clear();
  for (int64_t i = 0; i < n; ++i) views_.push_back(gradient_of(gradients[i], names_[static_cast<size_t>(i)], call));
  by_address_ = views_;
  require_apart(by_address_, call);
  return views_;
}

}  // namespace st::capi
