#include "gemm_operands.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>
#include <type_traits>

#include "failure.h"

namespace cli {
namespace {

constexpr double kCheckEverything = 1 << 21;  // multiply-adds, a few milliseconds
constexpr int kCheckedRows = 8, kCheckedColumns = 24;

uint64_t scramble(uint64_t x) {  // splitmix64, Vigna
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

float symmetric(uint64_t bits) { return static_cast<float>(bits & 0xFFFFFF) * 0x1p-23F - 1; }

struct Bf16 {
  uint16_t bits;
};
struct Fp16 {
  uint16_t bits;
};

/// Rounds to nearest, ties to even: the lowest kept bit decides.
uint32_t rounded_shift(uint32_t bits, int by) { return (bits + (1U << (by - 1)) - 1 + ((bits >> by) & 1)) >> by; }

template <class Value>
Value element_of(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  if constexpr (std::is_same_v<Value, Bf16>) {
    return {static_cast<uint16_t>(rounded_shift(bits, 16))};
  } else if constexpr (std::is_same_v<Value, Fp16>) {
    const uint32_t size = bits & 0x7FFFFFFF, sign = bits >> 31 << 15;
    if (size < 0x38800000) return {static_cast<uint16_t>(sign)};  // one value in 16,384 is a denormal: use 0
    return {static_cast<uint16_t>(sign | (rounded_shift(size, 13) - (112U << 10)))};
  } else {
    return x;
  }
}

double value_of(float x) { return double(x); }
double value_of(Bf16 x) { return double(std::bit_cast<float>(uint32_t{x.bits} << 16)); }
double value_of(Fp16 x) {
  const uint32_t size = x.bits & 0x7FFF, sign = uint32_t{x.bits} >> 15 << 31;
  return double(std::bit_cast<float>(sign | (size == 0 ? 0 : (size << 13) + (112U << 23))));
}

template <class Value>
void draw_into(Value* values, int64_t count, uint64_t seed) {
  for (int64_t i = 0; i + 1 < count; i += 2) {
    const uint64_t bits = scramble(seed + static_cast<uint64_t>(i));
    values[i] = element_of<Value>(symmetric(bits)), values[i + 1] = element_of<Value>(symmetric(bits >> 32));
  }
  if (count % 2 == 1) values[count - 1] = element_of<Value>(symmetric(scramble(seed - 1)));
}

/// The first, the last, and random others.
std::vector<int64_t> some_of(int64_t size, int count, std::mt19937_64& random) {
  std::vector<int64_t> chosen = {0, size - 1};
  while (std::ssize(chosen) < count) chosen.push_back(static_cast<int64_t>(random() % static_cast<uint64_t>(size)));
  return chosen;
}

}  // namespace

GemmOperands::GemmOperands(const GemmShape& s)
    : shape_(s),
      a_(allocate(s.m * s.k * element_bytes())),
      b_(allocate(s.k * s.n * element_bytes())),
      c_(allocate(s.m * s.n * int64_t{sizeof(float)})) {}

GemmOperands::Matrix GemmOperands::allocate(int64_t size) {
  constexpr size_t kHuge = size_t{1} << 21, kLine = 64;
  const size_t bytes = static_cast<size_t>(size), unit = bytes >= kHuge ? kHuge : kLine;
  void* memory = std::aligned_alloc(unit, (bytes + unit - 1) / unit * unit);
  if (memory == nullptr) throw Failure(kFailed, "bench: no memory for a matrix of " + std::to_string(bytes) + " bytes");
  if (unit == kHuge) madvise(memory, bytes, MADV_HUGEPAGE);
  return Matrix(memory);
}

void GemmOperands::draw(uint64_t seed) {
  fill(a_.get(), shape_.m * shape_.k, scramble(seed));
  fill(b_.get(), shape_.k * shape_.n, scramble(~seed));
  std::fill_n(c(), shape_.m * shape_.n, std::numeric_limits<float>::quiet_NaN());
}

void GemmOperands::fill(void* values, int64_t count, uint64_t seed) const {
  if (shape_.element == Element::fp32)
    draw_into(static_cast<float*>(values), count, seed);
  else if (shape_.element == Element::bf16)
    draw_into(static_cast<Bf16*>(values), count, seed);
  else
    draw_into(static_cast<Fp16*>(values), count, seed);
}

std::string GemmOperands::difference(uint64_t seed) const {
  const int64_t elements = shape_.m * shape_.n;
  const float* hole = std::find_if(c(), c() + elements, [](float x) { return std::isnan(x); });
  if (hole != c() + elements)
    return "C[" + std::to_string((hole - c()) / shape_.n) + "," + std::to_string((hole - c()) % shape_.n) + "] is NaN";
  std::mt19937_64 random(seed);
  std::vector<int64_t> rows, columns;
  if (flops_of(shape_) / 2 <= kCheckEverything) {
    for (int64_t i = 0; i < shape_.m; ++i) rows.push_back(i);
    for (int64_t j = 0; j < shape_.n; ++j) columns.push_back(j);
  } else {
    rows = some_of(shape_.m, kCheckedRows, random), columns = some_of(shape_.n, kCheckedColumns, random);
  }
  if (shape_.element == Element::fp32) return difference_at<float>(rows, columns);
  return shape_.element == Element::bf16 ? difference_at<Bf16>(rows, columns) : difference_at<Fp16>(rows, columns);
}

template <class Value>
std::string GemmOperands::difference_at(const std::vector<int64_t>& rows, const std::vector<int64_t>& columns) const {
  const auto [a_i, a_p] = shape_.transposed_a ? std::pair(int64_t{1}, shape_.m) : std::pair(shape_.k, int64_t{1});
  const auto [b_p, b_j] = shape_.transposed_b ? std::pair(int64_t{1}, shape_.k) : std::pair(shape_.n, int64_t{1});
  const auto *a = static_cast<const Value*>(a_.get()), *b = static_cast<const Value*>(b_.get());
  struct Sum {
    double products = 0, squares = 0;
  };
  std::vector<Sum> sums(rows.size() * columns.size());
  for (int64_t p = 0; p < shape_.k; ++p) {  // the outer loop, so that each element of B is read from memory once
    Sum* sum = sums.data();
    for (const int64_t i : rows)
      for (const int64_t j : columns) {
        const double product = value_of(a[i * a_i + p * a_p]) * value_of(b[p * b_p + j * b_j]);
        sum->products += product, sum->squares += product * product;
        ++sum;
      }
  }
  // Terms have random signs: each rounding is of a partial sum of about sqrt(squares), and k of them add up as sqrt(k), in any order.
  // Rounding cannot reach sixteen times that, and a missing term exceeds it up to k of about 50,000. 16-bit elements are compared as
  // rounded: their products are exact in fp32, and the sums are fp32.
  const Sum* sum = sums.data();
  for (const int64_t i : rows)
    for (const int64_t j : columns) {
      const double got = double(c()[i * shape_.n + j]), allowed = 16 * std::sqrt(double(shape_.k) * sum->squares) * 0x1p-24;
      if (std::abs(got - sum->products) > allowed) {
        char text[128];
        std::snprintf(text, sizeof text, "C[%lld,%lld] is %.9g, but %.9g in double precision", (long long)i, (long long)j, got,
                      sum->products);
        return text;
      }
      ++sum;
    }
  return "";
}

}  // namespace cli
