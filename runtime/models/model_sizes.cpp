#include "models/model_sizes.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace st {
namespace {

constexpr int64_t kMaxLayers = 4096;

}  // namespace

void check_at_least_one(std::string_view model, std::string_view key, int64_t value) {
  check(value >= 1, model, ": ", key, " must be at least 1, got ", value);
}

void check_heads(std::string_view model, int64_t width, int64_t heads) {
  check(width % heads == 0, model, ": width must be divisible by heads, got width ", width, " and heads ", heads,
        "; the nearest valid width is ", std::max<int64_t>(1, (width + heads / 2) / heads) * heads);
}

void check_layers(std::string_view model, int64_t layers) {
  check_at_least_one(model, "layers", layers);
  check(layers <= kMaxLayers, model, ": layers must be at most ", kMaxLayers, ", got ", layers);
}

void check_vocabulary(std::string_view model, int64_t vocabulary) {
  check_at_least_one(model, "vocabulary", vocabulary);
  check(vocabulary <= INT32_MAX, model, ": vocabulary must be at most 2147483647, because token ids are i32, got ", vocabulary);
}

void check_above_zero(std::string_view model, std::string_view key, double value) {
  check(std::isfinite(value) && value > 0, model, ": ", key, " must be a number above 0, got ", value);
}

}  // namespace st
