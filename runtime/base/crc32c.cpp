// The message is a polynomial over two elements; its crc is the remainder of a division by P. Both are reflected: a word's highest bit is
// its lowest power of x. Folding (Gopal et al., "Fast CRC computation for generic polynomials using PCLMULQDQ", Intel 2009) multiplies a
// block by x^distance mod P and adds it to the block at that distance: the remainder stays the same and the message gets shorter.
#include "base/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace st {
namespace {

constexpr uint32_t kPolynomial = 0x82F63B78;

// Row k: the effect of a byte on the crc when k zero bytes follow. So eight bytes take eight independent look-ups.
using Table = std::array<std::array<uint32_t, 256>, 8>;

constexpr Table make_table() {
  Table table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0U);
    table[0][byte] = crc;
  }
  for (size_t k = 1; k < 8; ++k)
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = table[k - 1][byte];
      table[k][byte] = (before >> 8) ^ table[0][before & 0xFF];
    }
  return table;
}

constexpr Table kTable = make_table();

/// a b mod P.
constexpr uint32_t product(uint32_t a, uint32_t b) {
  uint32_t sum = 0;
  for (uint32_t bit = 1U << 31; bit != 0; bit >>= 1) {
    if ((a & bit) != 0) sum ^= b;
    b = (b >> 1) ^ ((b & 1) != 0 ? kPolynomial : 0U);
  }
  return sum;
}

/// x^n mod P.
constexpr uint32_t power(uint64_t n) {
  uint32_t result = 1U << 31;
  for (uint32_t square = 1U << 30; n != 0; n >>= 1, square = product(square, square))
    if ((n & 1) != 0) result = product(result, square);
  return result;
}

uint32_t byte_at(std::span<const std::byte> bytes, size_t i) { return static_cast<uint32_t>(bytes[i]); }

uint32_t by_table(std::span<const std::byte> bytes, uint32_t crc) {
  crc = ~crc;
  size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    const uint32_t low = crc ^ (byte_at(bytes, i) | byte_at(bytes, i + 1) << 8 | byte_at(bytes, i + 2) << 16 | byte_at(bytes, i + 3) << 24);
    crc = kTable[7][low & 0xFF] ^ kTable[6][(low >> 8) & 0xFF] ^ kTable[5][(low >> 16) & 0xFF] ^ kTable[4][low >> 24] ^
          kTable[3][byte_at(bytes, i + 4)] ^ kTable[2][byte_at(bytes, i + 5)] ^ kTable[1][byte_at(bytes, i + 6)] ^
          kTable[0][byte_at(bytes, i + 7)];
  }
  for (; i < bytes.size(); ++i) crc = (crc >> 8) ^ kTable[0][(crc ^ byte_at(bytes, i)) & 0xFF];
  return ~crc;
}

bool anywhere() { return true; }

#if defined(__x86_64__)

#define ST_SSE __attribute__((target("sse4.2,pclmul")))
#define ST_AVX512 __attribute__((target("avx512f,avx512vl,vpclmulqdq,sse4.2,pclmul")))

ST_SSE uint32_t by_instruction(std::span<const std::byte> bytes, uint32_t crc) {
  uint64_t state = ~crc;
  size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, sizeof word);
    state = _mm_crc32_u64(state, word);
  }
  auto last = static_cast<uint32_t>(state);
  for (; i < bytes.size(); ++i) last = _mm_crc32_u8(last, static_cast<unsigned char>(bytes[i]));
  return ~last;
}

/// Advances a crc by kBytes, except for the last division, which the crc instruction does. The product of two reflected 32-bit words gains
/// a factor x in its 64 bits, and the instruction adds x^32.
template <size_t kBytes>
ST_SSE inline uint64_t moved(uint64_t crc) {
  constexpr uint32_t kBy = power(8 * kBytes - 33);
  const __m128i by = _mm_cvtsi32_si128(static_cast<int>(kBy));
  return static_cast<uint64_t>(_mm_cvtsi128_si64(_mm_clmulepi64_si128(_mm_cvtsi32_si128(static_cast<int>(crc)), by, 0x00)));
}

/// Three interleaved chains, since one chain of dependent instructions idles two of three cycles. The parts are short: distant parts are
/// fetched from memory less well.
ST_SSE uint32_t by_three_chains(std::span<const std::byte> bytes, uint32_t crc) {
  constexpr size_t kPart = 336;
  const auto word_at = [&](size_t i) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, sizeof word);
    return word;
  };
  uint64_t first = ~crc;
  size_t done = 0;
  for (; done + 3 * kPart <= bytes.size(); done += 3 * kPart) {
    uint64_t second = 0, third = 0;
    for (size_t i = done; i < done + kPart; i += 8) {
      first = _mm_crc32_u64(first, word_at(i));
      second = _mm_crc32_u64(second, word_at(i + kPart));
      third = _mm_crc32_u64(third, word_at(i + 2 * kPart));
    }
    first = third ^ _mm_crc32_u64(0, moved<2 * kPart>(first) ^ moved<kPart>(second));
  }
  return by_instruction(bytes.subspan(done), ~static_cast<uint32_t>(first));
}

/// The factor that moves half of a 16-byte vector by `bits`. 32 of them are implied: a 32-bit remainder in a 64-bit word is worth x^32
/// more. A product of reflected words is worth x more, and the 2 cancels that.
constexpr long long folding(uint64_t bits) { return 2 * static_cast<long long>(power(bits - 32)); }

/// Adds `x` to `there`, each 16 bytes of `x` moved by the distance that `by` was made for.
ST_AVX512 inline __m512i fold(__m512i x, __m512i by, __m512i there) {
  constexpr int kXorOfThree = 0x96;
  return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(x, by, 0x00), _mm512_clmulepi64_epi128(x, by, 0x11), there, kXorOfThree);
}

ST_AVX512 uint32_t by_folding(std::span<const std::byte> bytes, uint32_t crc) {
  constexpr size_t kChains = 4;  // a product's latency is about four times the interval at which products can start
  constexpr size_t kVector = 64, kStep = kChains * kVector;
  constexpr long long kFarLow = folding(8 * kStep + 64), kFarHigh = folding(8 * kStep);
  constexpr long long kNearLow = folding(8 * kVector + 64), kNearHigh = folding(8 * kVector);
  if (bytes.size() < kStep) return by_three_chains(bytes, crc);

  const auto* from = reinterpret_cast<const __m512i*>(bytes.data());
  __m512i chains[kChains];  // std::array would lose the type's alignment
  for (size_t k = 0; k < kChains; ++k) chains[k] = _mm512_loadu_si512(from + k);
  chains[0] = _mm512_xor_si512(chains[0], _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(~crc))));
  const __m512i far = _mm512_set4_epi64(kFarHigh, kFarLow, kFarHigh, kFarLow);
  const __m512i near = _mm512_set4_epi64(kNearHigh, kNearLow, kNearHigh, kNearLow);
  size_t done = kStep;
  for (; done + kStep <= bytes.size(); done += kStep) {
    from += kChains;
    for (size_t k = 0; k < kChains; ++k) chains[k] = fold(chains[k], far, _mm512_loadu_si512(from + k));
  }
  __m512i last = chains[0];
  for (size_t k = 1; k < kChains; ++k) last = fold(last, near, chains[k]);
  std::array<std::byte, kVector> rest;
  _mm512_storeu_si512(rest.data(), last);
  return by_instruction(bytes.subspan(done), by_instruction(rest, ~0U));
}

bool has_sse() { return __builtin_cpu_supports("sse4.2") != 0 && __builtin_cpu_supports("pclmul") != 0; }
bool has_avx512() { return has_sse() && __builtin_cpu_supports("avx512vl") != 0 && __builtin_cpu_supports("vpclmulqdq") != 0; }

constexpr std::array kWays = {
    Crc32cImplementation{"folding", has_avx512, by_folding}, Crc32cImplementation{"three chains", has_sse, by_three_chains},
    Crc32cImplementation{"instruction", has_sse, by_instruction}, Crc32cImplementation{"table", anywhere, by_table}};

#else

constexpr std::array kWays = {Crc32cImplementation{"table", anywhere, by_table}};

#endif

auto fastest() {
  for (const Crc32cImplementation& way : kWays)
    if (way.is_here()) return way.run;
  return kWays.back().run;
}

}  // namespace

std::span<const Crc32cImplementation> crc32c_ways() { return kWays; }

uint32_t crc32c(std::span<const std::byte> bytes, uint32_t crc) {
  static const auto run = fastest();
  return run(bytes, crc);
}

uint32_t crc32c_combine(uint32_t crc_of_a, uint32_t crc_of_b, int64_t bytes_of_b) {
  return product(crc_of_a, power(8 * static_cast<uint64_t>(bytes_of_b))) ^ crc_of_b;
}

}  // namespace st
