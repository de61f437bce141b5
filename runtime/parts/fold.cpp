#include "parts/fold.h"

#include <algorithm>
#include <array>

#include "base/half_lanes.h"

namespace st {
namespace {

constexpr int64_t kBlock = 512;  // elements taken at a time: they stay in the first cache
constexpr int64_t kChunk = 16;   // elements converted at a time, some of them for nothing: no loop for a rest

template <class T>
void gather(const std::byte* from, int64_t stride, int64_t n, T* to) {
  const auto* const theirs = reinterpret_cast<const T*>(from);
  if (stride == 1) return static_cast<void>(std::copy_n(theirs, n, to));
  for (int64_t i = 0; i < n; ++i) to[i] = theirs[i * stride];
}

template <class T>
void scatter(const T* from, int64_t n, std::byte* to, int64_t stride) {
  auto* const theirs = reinterpret_cast<T*>(to);
  if (stride == 1) return static_cast<void>(std::copy_n(from, n, theirs));
  for (int64_t i = 0; i < n; ++i) theirs[i * stride] = from[i];
}

template <class From, class To, class Convert>
[[gnu::noinline]] void convert(const From* from, int64_t n, To* to, const Convert& one) {
  for (int64_t i = 0; i < n; i += kChunk)
    for (int64_t j = i; j < i + kChunk; ++j) to[j] = one(from[j]);
}

/// A block of a host's elements, widened.
template <class C>
class Block {
 public:
  Block(DType dtype, std::byte* theirs, int64_t stride, int64_t n) : dtype_(dtype), theirs_(theirs), stride_(stride), n_(n) {}

  bool is_half() const { return sizeof(C) == 4 && (dtype_ == DType::bf16 || dtype_ == DType::f16); }
  bool lies_as_is() const { return stride_ == 1 && !is_half(); }
  C* values() { return lies_as_is() ? reinterpret_cast<C*>(theirs_) : wide_.data(); }

  void load() {
    if (lies_as_is()) return;
    if (!is_half()) return gather(theirs_, stride_, n_, wide_.data());
    gather(theirs_, stride_, n_, half_.data());
    std::fill_n(half_.data() + n_, -n_ & (kChunk - 1), uint16_t{0});
    if (dtype_ == DType::bf16) return convert(half_.data(), n_, wide_.data(), [](uint16_t h) -> C { return wide_of_bf16(h); });
    convert(half_.data(), n_, wide_.data(), [](uint16_t h) -> C { return wide_of_f16(h); });
  }
  void store() {
    if (lies_as_is()) return;
    if (!is_half()) return scatter(wide_.data(), n_, theirs_, stride_);
    std::fill_n(wide_.data() + n_, -n_ & (kChunk - 1), C(0));
    if (dtype_ == DType::bf16)
      convert(wide_.data(), n_, half_.data(), [](C value) { return bf16_from(static_cast<float>(value)); });
    else
      convert(wide_.data(), n_, half_.data(), [](C value) { return f16_from(static_cast<float>(value)); });
    scatter(half_.data(), n_, theirs_, stride_);
  }

 private:
  DType dtype_;
  std::byte* theirs_;
  int64_t stride_, n_;
  std::array<C, kBlock> wide_;
  std::array<uint16_t, kBlock> half_;
};

/// to[i] = one(i), by way of a chunk that overlaps nothing: so compilers make vectors of it without asking what `one` reads.
template <class C, class One>
void each(int64_t n, C* to, const One& one) {
  int64_t i = 0;
  for (; i + kChunk <= n; i += kChunk) {
    std::array<C, kChunk> chunk;
    for (size_t j = 0; j < kChunk; ++j) chunk[j] = one(i + static_cast<int64_t>(j));
    std::copy_n(chunk.data(), kChunk, to + i);
  }
  for (; i < n; ++i) to[i] = one(i);
}

/// The result of the last is left in g.
template <class C>
void fold_block(const Fold& how, C* g, C* sum, int64_t n) {
  const C factor = static_cast<C>(how.factor);
  if (!how.last && how.first) {
    std::copy_n(g, n, sum);
  } else if (!how.last) {
    each(n, sum, [=](int64_t i) { return sum[i] + g[i]; });
  } else if (how.empty) {
    each(n, g, [=](int64_t i) { return sum[i] * factor; });
  } else if (how.first) {
    each(n, g, [=](int64_t i) { return g[i] * factor; });
  } else {
    each(n, g, [=](int64_t i) { return (sum[i] + g[i]) * factor; });
  }
}

template <class C>
void fold_as(const GradientArray& array, std::byte* sum, const Fold& how, Workers& workers) {
  const int64_t width = bytes_of(array.dtype);
  each_row(array, workers, [&](int64_t offset, int64_t place, int64_t count, int64_t stride) {
    for (int64_t done = 0; done < count; done += kBlock) {
      const int64_t n = std::min(kBlock, count - done);
      Block<C> block(array.dtype, static_cast<std::byte*>(array.data) + (offset + done * stride) * width, stride, n);
      if (!how.empty) block.load();
      fold_block(how, block.values(), reinterpret_cast<C*>(sum) + place + done, n);
      if (how.last) block.store();
    }
  });
}

}  // namespace

int64_t sum_bytes(const GradientArray& array) { return array.shape.elements() * (array.dtype == DType::f64 ? 8 : 4); }

void fold(const GradientArray& array, std::byte* sum, const Fold& how, Workers& workers) {
  if (array.shape.elements() == 0 || (how.empty && !how.last)) return;
  if (array.dtype == DType::f64) return fold_as<double>(array, sum, how, workers);
  fold_as<float>(array, sum, how, workers);
}

}  // namespace st
