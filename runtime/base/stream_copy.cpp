#include "base/stream_copy.h"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <cstring>

#ifdef __SSE2__  // every x86-64 has it
#include <emmintrin.h>
#endif

namespace st {

#ifdef __SSE2__
namespace {

constexpr size_t kLine = 64;

void stream_line(std::byte* to, const std::byte* from) {
  const auto* source = reinterpret_cast<const __m128i*>(from);
  auto* target = reinterpret_cast<__m128i*>(to);
  const __m128i a = _mm_loadu_si128(source), b = _mm_loadu_si128(source + 1), c = _mm_loadu_si128(source + 2),
                d = _mm_loadu_si128(source + 3);
  _mm_stream_si128(target, a);
  _mm_stream_si128(target + 1, b);
  _mm_stream_si128(target + 2, c);
  _mm_stream_si128(target + 3, d);
}

}  // namespace

void stream_copy(std::span<std::byte> to, std::span<const std::byte> from) {
  assert(to.size() == from.size());
  const size_t n = to.size(), odd = (kLine - reinterpret_cast<uintptr_t>(to.data()) % kLine) % kLine;
  size_t at = std::min(odd, n);
  if (at > 0) std::memcpy(to.data(), from.data(), at);
  for (; at + kLine <= n; at += kLine) stream_line(to.data() + at, from.data() + at);
  if (at < n) std::memcpy(to.data() + at, from.data() + at, n - at);
  _mm_sfence();  // orders the streaming stores before later ones
}
#else
void stream_copy(std::span<std::byte> to, std::span<const std::byte> from) {
  assert(to.size() == from.size());
  if (!to.empty()) std::memcpy(to.data(), from.data(), to.size());
}
#endif

}  // namespace st
