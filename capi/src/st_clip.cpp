#include "context_object.h"
#include "guard.h"

using namespace st;
using namespace st::capi;

st_status st_clip_norm(st_context* context, int64_t n, const st_view* gradients, double max, double* norm) {
  return guard([&] {
    const auto c = find(context);
    check(norm != nullptr || max != 0, "st_clip_norm: norm is NULL and max is 0, so there is nothing to do; give one of the two");
    if (!c->clip) c->clip = std::make_unique<NormClip>(*c->context);
    const double found = c->clip->clip(c->gradients.take(n, gradients, "st_clip_norm"), max);
    if (norm != nullptr) *norm = found;
  });
}
