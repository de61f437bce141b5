#include "base/vector_copy.h"

#include <cstdint>
#include <cstring>

#ifdef __SSE2__  // every x86-64 has it
#include <emmintrin.h>
#endif

namespace st {

#ifdef __SSE2__
namespace {

constexpr size_t kStride = 64, kFew = 1024, kPageBytes = 4096;

void copy_line(std::byte* to, const std::byte* from) {
  const auto* read = reinterpret_cast<const __m128i*>(from);
  auto* write = reinterpret_cast<__m128i*>(to);
  const __m128i a = _mm_loadu_si128(read), b = _mm_loadu_si128(read + 1), c = _mm_loadu_si128(read + 2), d = _mm_loadu_si128(read + 3);
  _mm_storeu_si128(write, a);
  _mm_storeu_si128(write + 1, b);
  _mm_storeu_si128(write + 2, c);
  _mm_storeu_si128(write + 3, d);
}

}  // namespace

void vector_copy(void* to, const void* from, size_t bytes) {
  if (bytes < kFew) {
    if (bytes > 0) std::memcpy(to, from, bytes);
    return;
  }
  auto* const target = static_cast<std::byte*>(to);
  const auto* const source = static_cast<const std::byte*>(from);
  const size_t whole = bytes / kStride * kStride;
  // A read whose page offset equals that of a recent write waits for it, so the copy runs in the direction where writes trail the reads.
  const bool is_behind = (reinterpret_cast<uintptr_t>(to) - reinterpret_cast<uintptr_t>(from)) % kPageBytes < kPageBytes / 2;
  if (is_behind)
    for (size_t at = whole; at > 0; at -= kStride) copy_line(target + at - kStride, source + at - kStride);
  else
    for (size_t at = 0; at < whole; at += kStride) copy_line(target + at, source + at);
  if (whole < bytes) std::memcpy(target + whole, source + whole, bytes - whole);
}
#else
void vector_copy(void* to, const void* from, size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}
#endif

}  // namespace st
