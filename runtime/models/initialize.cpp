#include "models/initialize.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "base/error.h"
#include "base/philox.h"

namespace st {
namespace {

using Pair = std::pair<double, double>;

/// Two doubles in [0, 1) of 53 bits each.
Pair uniforms(const Philox& philox, uint64_t block) {
  const auto bits = philox({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), 0, 0});
  const uint64_t a = bits[0] | uint64_t{bits[1]} << 32, b = bits[2] | uint64_t{bits[3]} << 32;
  return {static_cast<double>(a >> 11) * 0x1p-53, static_cast<double>(b >> 11) * 0x1p-53};
}

Pair normals(const Philox& philox, uint64_t block) {
  const auto [a, b] = uniforms(philox, block);
  const double radius = std::sqrt(-2 * std::log(1 - a));  // 1 - a is in (0, 1]: its logarithm is finite
  const double angle = 2 * std::numbers::pi * b;
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

/// values[i] = element first + i, where make(block) gives elements 2 block and 2 block + 1.
template <class Make>
void fill_pairs(std::span<float> values, int64_t first, Make make) {
  const auto size = static_cast<int64_t>(values.size());
  for (int64_t element = first - first % 2; element < first + size; element += 2) {
    const Pair pair = make(static_cast<uint64_t>(element / 2));
    if (element >= first) values[static_cast<size_t>(element - first)] = static_cast<float>(pair.first);
    if (element + 1 < first + size) values[static_cast<size_t>(element + 1 - first)] = static_cast<float>(pair.second);
  }
}

struct Fan {
  double in, out;
};

Fan fan_of(const Shape& shape, std::string_view name) {
  const int32_t rank = shape.rank();
  check(rank >= 2, "initialize ", name, ": xavier and kaiming need a shape that ends in [in, out], got ", shape, "; use normal or uniform");
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
  check(!shape.is_symbolic(), "initialize ", name, ": a parameter's shape cannot hold the batch, got ", shape);
  check(first >= 0 && first <= shape.elements() && size <= shape.elements() - first, "initialize ", name, ": ", size, " elements from ",
        first, " on are not all in shape ", shape);
  if (size == 0) return;

  const Philox philox = philox_of(mix(seed, hash_name(name)));
  const auto normal = [&](double deviation) {
    fill_pairs(values, first, [&](uint64_t block) {
      const auto [a, b] = normals(philox, block);
      return Pair{a * deviation, b * deviation};
    });
  };
  const auto uniform = [&](double half_width) {
    fill_pairs(values, first, [&](uint64_t block) {
      const auto [a, b] = uniforms(philox, block);
      return Pair{(2 * a - 1) * half_width, (2 * b - 1) * half_width};
    });
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
  fail(Code::invalid_argument, text("initialize ", name, ": unknown kind of initialiser ", static_cast<int32_t>(init.kind)));
}

}  // namespace st
