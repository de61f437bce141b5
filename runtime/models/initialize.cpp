#include "models/initialize.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "base/philox.h"
#include "models/box_muller.h"

namespace st {
namespace {

/// Sets values[i] to element first + i times scale; block(k) makes elements [2 k, 2 (k + kPairs)).
template <class Block>
void fill_pairs(std::span<float> values, int64_t first, double scale, Block block) {
  const auto end = first + static_cast<int64_t>(values.size());
  constexpr auto kElements = static_cast<int64_t>(2 * kPairs);
  std::array<float, 2 * kPairs> made;
  for (int64_t start = first - first % 2; start < end; start += kElements) {
    const PairBlock pairs = block(static_cast<uint64_t>(start / 2));
    for (size_t i = 0; i < kPairs; ++i) {
      made[2 * i] = static_cast<float>(pairs.first[i] * scale);
      made[2 * i + 1] = static_cast<float>(pairs.second[i] * scale);
    }
    const int64_t from = std::max(start, first), to = std::min(start + kElements, end);
    std::copy(made.begin() + (from - start), made.begin() + (to - start), values.begin() + (from - first));
  }
}

/// Maps [0, 1) to [-1, 1); exact.
PairBlock centred(PairBlock pairs) {
  for (size_t i = 0; i < kPairs; ++i) {
    pairs.first[i] = 2 * pairs.first[i] - 1;
    pairs.second[i] = 2 * pairs.second[i] - 1;
  }
  return pairs;
}

struct Fan {
  double in, out;
};

Fan fan_of(const Shape& shape, std::string_view name) {
  const int32_t rank = shape.rank();
  check(rank >= 2, "initialize ", name, ": xavier and kaiming need at least 2 dimensions, [..., in, out], got ", shape,
        "; use normal or uniform");
  return {static_cast<double>(shape[rank - 2]), static_cast<double>(shape[rank - 1])};
}

void copy_values(std::span<float> values, const Initializer& init, const Shape& shape, std::string_view name, int64_t first) {
  check(static_cast<int64_t>(init.values.size()) == shape.elements(), "initialize ", name, ": shape ", shape, " has ", shape.elements(),
        " elements, but ", init.values.size(), " values were given");
  std::copy_n(init.values.begin() + first, values.size(), values.begin());
}

}  // namespace

void initialize(std::span<float> values, const Initializer& init, const Shape& shape, std::string_view name, uint64_t seed, int64_t first) {
  const auto size = static_cast<int64_t>(values.size());
  check(!shape.is_symbolic(), "initialize ", name, ": a parameter's shape must not depend on the batch, got ", shape);
  check(first >= 0 && first <= shape.elements() && size <= shape.elements() - first, "initialize ", name, ": ", size, " elements from ",
        first, " exceed shape ", shape);
  if (size == 0) return;

  const Philox philox = philox_of(mix(seed, hash_name(name)));
  const auto normal = [&](double deviation) {
    fill_pairs(values, first, deviation, [&](uint64_t counter) { return box_muller(uniform_pairs(philox, counter)); });
  };
  const auto uniform = [&](double half_width) {
    fill_pairs(values, first, half_width, [&](uint64_t counter) { return centred(uniform_pairs(philox, counter)); });
  };

  switch (init.kind) {
    case Init::zeros:
      return std::fill(values.begin(), values.end(), 0.0F);
    case Init::ones:
      return std::fill(values.begin(), values.end(), 1.0F);
    case Init::normal:
      return normal(init.scale);
    case Init::uniform:
      return uniform(init.scale);
    case Init::xavier: {
      const Fan fan = fan_of(shape, name);
      return uniform(init.scale * std::sqrt(6 / (fan.in + fan.out)));
    }
    case Init::kaiming:
      return normal(init.scale / std::sqrt(fan_of(shape, name).in));
    case Init::values:
      return copy_values(values, init, shape, name, first);
  }
  fail(Code::invalid_argument, text("initialize ", name, ": initialiser kind ", static_cast<int32_t>(init.kind), " is unknown"));
}

}  // namespace st
