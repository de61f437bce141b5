// vdpbf16ps: acc += a1 b1 + a2 b2 in twelve named accumulators, as in the FMA loop. tdpbf16ps: six of the eight tiles are accumulators, 16
// clocks apart and 52 deep. The disassembly shows twelve and six of them per turn and no load or store.
#include "bf16_peak.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#endif

namespace cli {
namespace {

#if defined(__x86_64__)
// clang-format off
#define ST_TWELVE(X) X(a) X(b) X(c) X(d) X(e) X(f) X(g) X(h) X(i) X(j) X(k) X(l)
// clang-format on
constexpr int kTenth = 0x3DCD3DCD;  // two bf16 values of 0.1

__attribute__((target("avx512f,avx512bf16"))) double loop_vdpbf16ps(long turns) {
  const auto tenths = (__m512bh)_mm512_set1_epi32(kTenth);
#define ST_BEGIN_AT(x) __m512 x = _mm512_set1_ps(static_cast<float>(#x[0]));
#define ST_TURN(x) x = _mm512_dpbf16_ps(x, tenths, tenths);
#define ST_SUM(x) sum = _mm512_add_ps(sum, x);
  ST_TWELVE(ST_BEGIN_AT)
  for (long t = 0; t < turns; ++t) {
    ST_TWELVE(ST_TURN)
  }
  __m512 sum = _mm512_setzero_ps();
  ST_TWELVE(ST_SUM)
#undef ST_BEGIN_AT
#undef ST_TURN
#undef ST_SUM
  return static_cast<double>(_mm512_cvtss_f32(sum));
}
#undef ST_TWELVE

constexpr int kTileRows = 16, kTileBytes = 64, kTileRegisters = 8;

struct alignas(64) TileShapes {  // the operand of ldtilecfg
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

__attribute__((target("amx-tile,amx-bf16"))) double loop_amx(long turns) {
  TileShapes shapes;
  for (int tile = 0; tile < kTileRegisters; ++tile) shapes.row_bytes[tile] = kTileBytes, shapes.rows[tile] = kTileRows;
  alignas(64) std::array<int32_t, kTileRows * kTileBytes / 4> tenths;
  tenths.fill(kTenth);
  __asm__ volatile("" ::: "memory");  // GCC 12's tile instructions do not declare what they read
  _tile_loadconfig(&shapes);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  _tile_loadd(6, tenths.data(), kTileBytes);
  _tile_loadd(7, tenths.data(), kTileBytes);
  for (long t = 0; t < turns; ++t) {
    _tile_dpbf16ps(0, 6, 7);
    _tile_dpbf16ps(1, 6, 7);
    _tile_dpbf16ps(2, 6, 7);
    _tile_dpbf16ps(3, 6, 7);
    _tile_dpbf16ps(4, 6, 7);
    _tile_dpbf16ps(5, 6, 7);
  }
  alignas(64) std::array<float, kTileRows * kTileBytes / 4> sum{};
  _tile_stored(0, sum.data(), kTileBytes);
  _tile_release();
  return static_cast<double>(sum[0]);
}

bool has_amx_bf16() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kAmxBf16 = 1U << 22, kAmxTile = 1U << 24;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & (kAmxBf16 | kAmxTile)) == (kAmxBf16 | kAmxTile);
}

/// The system grants the tiles' state on request, once per process.
bool may_use_tiles() {
  constexpr unsigned kTileState = 18;
  constexpr int kRequest = 0x1023;  // ARCH_REQ_XCOMP_PERM, missing in older headers
  return syscall(SYS_arch_prctl, kRequest, kTileState) == 0;
}
#endif

}  // namespace

std::vector<PeakLoop> bf16_loops() {
  std::vector<PeakLoop> loops;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bf16"))
    loops.push_back({"vdpbf16ps", loop_vdpbf16ps, 12. * 2 * 2 * 16});
  if (has_amx_bf16() && may_use_tiles()) loops.push_back({"amx", loop_amx, 6. * 2 * kTileRows * kTileRows * (kTileBytes / 2.)});
#endif
  return loops;
}

}  // namespace cli
