// The kernels and PTX wrappers of the CPU shim (CUDASHIM, see README.md), compiled by nvcc and run on the device, or by g++ against the
// shim. Usage: wrapper_probes OUTPUT [REFERENCE [ONLY]]: writes every result to OUTPUT and compares it with REFERENCE, the other build's
// OUTPUT.
#include "probe.h"
#include "tensor_core.h"
// The kernels' own headers follow: they replace threadIdx and others by macros when the shim's headers are in the include path.
#include <bit>
#include <cmath>
#include <map>
#include <random>

#include <cuda_fp16.h>

#include "kernels/gemm_hopper.cuh"
#include "kernels/gemm_mma.cuh"
#include "kernels/gemm_shared.cuh"
#include "kernels/layer_norm_backward.cuh"

using namespace probe;

namespace {

constexpr int kSlots = 20;

/// Every wrapper that the kernels use, each result in a slot of its own.
__global__ void wrappers(const float* in, float* out, int* counter) {
  SHARED(float, named, [64]);
  auto* rows = static_cast<__nv_bfloat16*>(dynamic_shared());  // 4 matrices of 8 x 8, then 64 copied vectors of 16 bytes
  float* mine = out + threadIdx.x * kSlots;
  float v = in[threadIdx.x];
  mine[0] = shuffle_xor(v, 5);
  mine[1] = shuffle(v, 3);
  mine[2] = shuffle(v, 35);
  mine[3] = shuffle_down(v, 4);
  mine[4] = lane_id() < 16 ? shuffle_xor(v, 7, 0xffffu) : 0;
  mine[5] = float(lane_id() + 100 * warp_id());
  atomic_add(counter, int(threadIdx.x));
  for (int i = threadIdx.x; i < 256; i += 64) rows[i] = __float2bfloat16(float(i));
  sync_block();
  mine[6] = float(*counter);
  uint32_t d[4];
  load_matrix_x4(d, rows + lane_id() * 8);
  for (int i = 0; i < 4; ++i) mine[7 + i] = __builtin_bit_cast(float, d[i]);
  load_matrix_x4<true>(d, rows + lane_id() * 8);
  for (int i = 0; i < 4; ++i) mine[11 + i] = __builtin_bit_cast(float, d[i]);
  auto* copied = reinterpret_cast<float*>(rows + 256) + threadIdx.x * 4;
  for (int i = 0; i < 4; ++i) copied[i] = -1;
  cp_async_16(copied, in + threadIdx.x / 4 * 4, threadIdx.x % 3 != 0);
  cp_async_commit();
  cp_async_wait<0>();
  mine[15] = copied[0];
  mine[16] = copied[3];
  if (warp_id() == 1) named[lane_id()] = v;
  sync_some(1, 64);
  mine[17] = named[31 - lane_id()];
  sync_warp(lane_id() < 16 ? 0xffffu : 0xffff0000u);
  mine[18] = v;
  mine[19] = rsqrt_fast(v * v + 0.1f);
}

/// Block 1 sends 64 values to block 0 by store_release and load_acquire.
__global__ void message(const float* in, float* box, unsigned* flag, float* out) {
  if (blockIdx.x == 1) {
    box[threadIdx.x] = in[threadIdx.x];
    sync_block();
    if (threadIdx.x == 0) fence_device(), store_release(flag, 1u);
  } else {
    if (threadIdx.x == 0)
      while (load_acquire(flag) == 0) spin_pause();
    sync_block();
    out[threadIdx.x] = box[63 - threadIdx.x];
  }
}

enum class Kind { bf16, fp16, tf32 };

/// D = A B + C for one 16 x 8 x K product a warp, K = 16 or (tf32) 8: A [16][K], B [8][K] (its rows are columns), C and D [16][8].
/// All operands come as floats that the type holds exactly.
template <Kind kind>
__global__ void mma_once(const float* a, const float* b, const float* c, float* d) {
  constexpr int k = kind == Kind::tf32 ? 8 : 16;
  a += int64_t(blockIdx.x) * 16 * k, b += int64_t(blockIdx.x) * 8 * k, c += int64_t(blockIdx.x) * 128, d += int64_t(blockIdx.x) * 128;
  int g = lane_id() / 4, t = lane_id() % 4;
  auto half = [](float v) { return kind == Kind::bf16 ? __bfloat16_as_ushort(__float2bfloat16(v)) : __half_as_ushort(__float2half(v)); };
  auto word = [&](const float* row, int part) {  // part 0 or 1: the lower or upper half of K
    if constexpr (kind == Kind::tf32)
      return __builtin_bit_cast(uint32_t, row[t + 4 * part]);
    else
      return uint32_t(half(row[2 * t + 8 * part])) | uint32_t(half(row[2 * t + 8 * part + 1])) << 16;
  };
  uint32_t af[4] = {word(a + g * k, 0), word(a + (g + 8) * k, 0), word(a + g * k, 1), word(a + (g + 8) * k, 1)};
  uint32_t bf[2] = {word(b + g * k, 0), word(b + g * k, 1)};
  float s[4] = {c[g * 8 + 2 * t], c[g * 8 + 2 * t + 1], c[(g + 8) * 8 + 2 * t], c[(g + 8) * 8 + 2 * t + 1]};
  if constexpr (kind == Kind::bf16) mma_m16n8k16_bf16(s, af, bf);
#ifdef __CUDACC__
#define ST_MMA(shape)                                                                    \
  asm("mma.sync.aligned." shape " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" \
      : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3])                                   \
      : "r"(af[0]), "r"(af[1]), "r"(af[2]), "r"(af[3]), "r"(bf[0]), "r"(bf[1]))
  if constexpr (kind == Kind::fp16) ST_MMA("m16n8k16.row.col.f32.f16.f16.f32");
  if constexpr (kind == Kind::tf32) ST_MMA("m16n8k8.row.col.f32.tf32.tf32.f32");
#endif
  for (int i = 0; i < 4; ++i) d[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = s[i];
}

cudaStream_t stream;
std::map<std::string, std::vector<float>> results, reference;
std::string only;

template <class T>
T* sent(const std::vector<T>& v) {
  T* data = on_device<T>(v.size());
  MUST(cudaMemcpyAsync(data, v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice, stream));
  MUST(cudaStreamSynchronize(stream));
  return data;
}

template <class T>
T* poisoned(size_t n, int byte = 0xff) {
  T* data = on_device<T>(n);
  MUST(cudaMemsetAsync(data, byte, n * sizeof(T), stream));
  return data;
}

int64_t ordered(float v) {
  int32_t bits = std::bit_cast<int32_t>(v);
  return bits < 0 ? int64_t(INT32_MIN) - bits : bits;
}

/// Fetches a result, compares it with the other build's and with `exact`; `exact` may be empty.
std::vector<float> keep(const std::string& name, const float* data, size_t n, const std::vector<double>& exact) {
  std::vector<float> v(n);
  MUST(cudaGetLastError());
  MUST(cudaMemcpyAsync(v.data(), data, n * 4, cudaMemcpyDeviceToHost, stream));
  MUST(cudaStreamSynchronize(stream));
  auto far = [&](const std::vector<float>& x) {
    double off = 0, norm = 0;
    for (size_t i = 0; i < n; ++i) off += (x[i] - exact[i]) * (x[i] - exact[i]), norm += exact[i] * exact[i];
    return std::sqrt(off / norm);
  };
  Line line("case", name);
  line("n", n);
  if (!exact.empty()) line("relative_error", far(v));
  if (auto other = reference.find(name); other != reference.end() && other->second.size() == n) {
    int64_t differ = 0, most = 0;
    for (size_t i = 0; i < n; ++i) {
      differ += std::bit_cast<uint32_t>(v[i]) != std::bit_cast<uint32_t>(other->second[i]);
      most = std::max(most, std::abs(ordered(v[i]) - ordered(other->second[i])));
    }
    line("bits_differ", differ)("most_ulp", most);
    if (!exact.empty()) line("relative_error_of_reference", far(other->second));
  }
  return results[name] = v;
}

using Draw = std::vector<float> (*)(std::mt19937&, size_t);
std::vector<float> normal(std::mt19937& g, size_t n) {
  std::vector<float> v(n);
  for (float& x : v) {  // a sum of uniform numbers: the same bits from every standard library
    x = -6;
    for (int i = 0; i < 12; ++i) x += float(g() >> 8) * 0x1p-24f;
  }
  return v;
}
std::vector<float> whole(std::mt19937& g, size_t n) {
  std::vector<float> v(n);
  for (float& x : v) x = float(int(g() % 17) - 8);
  return v;
}

std::vector<__nv_bfloat16> rounded(std::vector<float>& v) {
  std::vector<__nv_bfloat16> r;
  for (float& x : v) r.push_back(__float2bfloat16(x)), x = __bfloat162float(r.back());
  return r;
}

/// C = A op(B): B is [k][n], or [n][k] if `transposed`.
std::vector<double> product(const std::vector<float>& a, const std::vector<float>& b, int m, int n, int k, bool transposed) {
  std::vector<double> c(size_t(m) * n);
  for (int i = 0; i < m; ++i)
    for (int q = 0; q < k; ++q)
      for (int j = 0; j < n; ++j) c[i * n + j] += double(a[i * k + q]) * b[transposed ? j * k + q : q * n + j];
  return c;
}

void folds(std::mt19937& g) {
  int n = 100003, blocks = 17;
  auto x = normal(g, n);
  double sum = 0;
  for (float v : x) sum += v;
  float *slots = poisoned<float>(blocks), *out = poisoned<float>(1);
  auto* arrived = poisoned<unsigned>(1, 0);
  float* dx = sent(x);
  for (const char* name : {"reduce_sum", "reduce_sum again"}) {
    LAUNCH(reduce_sum, blocks, 256, 0, stream, dx, n, slots, arrived, out);
    keep(name, out, 1, {sum});
  }
}

void layer_norm(std::mt19937& g) {
  constexpr int width = 256;
  int rows = 64, blocks = 7;
  auto x = normal(g, rows * width), dy = normal(g, rows * width), gamma = normal(g, width);
  std::vector<float> mean(rows), rstd(rows);
  std::vector<double> dx(rows * width), dgamma(width), dbeta(width);
  for (int r = 0; r < rows; ++r) {
    double m = 0, v = 0, a = 0, b = 0;
    for (int c = 0; c < width; ++c) m += x[r * width + c] / double(width);
    for (int c = 0; c < width; ++c) v += (x[r * width + c] - m) * (x[r * width + c] - m) / width;
    double s = 1 / std::sqrt(v + 1e-5);
    mean[r] = float(m), rstd[r] = float(s);
    auto hat = [&](int c) { return (x[r * width + c] - m) * s; };
    for (int c = 0; c < width; ++c) {
      double d = dy[r * width + c];
      a += d * gamma[c] / width, b += d * gamma[c] * hat(c) / width;
      dgamma[c] += d * hat(c), dbeta[c] += d;
    }
    for (int c = 0; c < width; ++c) dx[r * width + c] = (double(dy[r * width + c]) * gamma[c] - a - hat(c) * b) * s;
  }
  float *out = poisoned<float>(rows * width), *parts = poisoned<float>(2 * blocks * width), *sums = poisoned<float>(2 * width);
  LAUNCH((layer_norm_backward<64, 4>), blocks, 64, 0, stream, sent(x), sent(gamma), sent(mean), sent(rstd), sent(dy), out, parts,
         parts + blocks * width, rows);
  for (int i = 0; i < 2; ++i) LAUNCH(add_parts, 4, 64, 0, stream, parts + i * blocks * width, blocks, width, sums + i * width);
  keep("layer_norm_backward dx", out, rows * width, dx);
  keep("layer_norm_backward dgamma", sums, width, dgamma);
  keep("layer_norm_backward dbeta", sums + width, width, dbeta);
}

/// The share of bits that one accumulator gives which takes K in order, 16 terms a step, as tensor_core.h adds them.
void chain(const std::string& name, const std::vector<float>& got, const std::vector<float>& a, const std::vector<float>& b, int n, int k) {
  size_t same = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const float *x = &a[i / n * k], *y = &b[i % n * k];
    float sum = 0;
    for (int q = 0; q < k; q += 16)
      sum = kTensorCore16(sum, 16, [&](int t) { return q + t < k ? std::pair(x[q + t], y[q + t]) : std::pair(0.0f, 0.0f); });
    same += std::bit_cast<uint32_t>(sum) == std::bit_cast<uint32_t>(got[i]);
  }
  Line("tensor_core", name + ", K in order")("n", got.size())("share_of_bits", double(same) / double(got.size()));
}

void products(Draw draw, const std::string& of) {
  if (only.empty() || only == "shared") {
    std::mt19937 g(21);  // its own: a part alone has the same operands
    int m = 100, n = 130, k = 70;
    auto a = draw(g, m * k), b = draw(g, k * n);
    float* c = poisoned<float>(m * n);
    LAUNCH(gemm_shared, dim3((n + 63) / 64, (m + 63) / 64), 256, 0, stream, sent(a), sent(b), c, m, n, k);
    keep("gemm_shared " + of, c, m * n, product(a, b, m, n, k, false));
  }
  if (only.empty() || only == "mma") {
    std::mt19937 g(22);
    int m = 100, n = 130, k = 128;
    auto a = draw(g, m * k), b = draw(g, n * k);
    auto *pa = sent(rounded(a)), *pb = sent(rounded(b));
    float* c = poisoned<float>(m * n);
    LAUNCH(gemm_mma, dim3((n + 63) / 64, (m + 63) / 64), 128, 4 * 64 * 40 * 2, stream, pa, pb, c, m, n, k);
    chain("gemm_mma " + of, keep("gemm_mma " + of, c, m * n, product(a, b, m, n, k, true)), a, b, n, k);
  }
  if (only.empty() || only == "hopper") {
    std::mt19937 g(23);
    int m = 150, n = 72, k = 328;
    auto a = draw(g, m * k), b = draw(g, n * k);
    auto *pa = sent(rounded(a)), *pb = sent(rounded(b));
    float* c = poisoned<float>(m * n);
    auto start = [&] {
      LAUNCH(gemm_hopper, dim3((n + 63) / 64, (m + 127) / 128), 384, sizeof(HopperTiles), stream, tensor_map_bf16(pa, m, k, 128, 64),
             tensor_map_bf16(pb, n, k, 64, 64), c, m, n, k);
    };
#ifdef __CUDACC__
    if (only.empty()) start();
    if (only.empty())
      Line("launch", "gemm_hopper without cudaFuncAttributeMaxDynamicSharedMemorySize")("shared", sizeof(HopperTiles))(
          "status", cudaGetErrorName(cudaGetLastError()));
    MUST(cudaFuncSetAttribute(gemm_hopper, cudaFuncAttributeMaxDynamicSharedMemorySize, int(sizeof(HopperTiles))));
#endif
    start();
    chain("gemm_hopper " + of, keep("gemm_hopper " + of, c, m * n, product(a, b, m, n, k, true)), a, b, n, k);
  }
  if (only.empty() || only == "tile") {
    std::mt19937 g(24);
    auto a = draw(g, 4096), b = draw(g, 4096);
    auto *pa = sent(rounded(a)), *pb = sent(rounded(b));
    float* c = poisoned<float>(4096);
    LAUNCH(tile_by_stores, 1, 128, 16384, stream, pa, pb, c);
    chain("tile_by_stores " + of, keep("tile_by_stores " + of, c, 4096, product(a, b, 64, 64, 64, true)), a, b, 64, 64);
  }
}

/// Prints the model that gives most results bit for bit, of one product of K terms each, from C.
template <class Term>
void fit(const std::string& name, const std::vector<float>& got, const std::vector<float>& c, int k, const Term& term) {
  Model best{};
  double most = -1;
  for (int group : {16, 8, 4})
    for (int extra : {0, 1, 2, 3, 4})
      for (bool factors : {true, false})
        for (bool nearest : {false, true}) {
          Model model{group, extra, factors, nearest};
          if (group > k) continue;
          size_t same = 0;
          for (size_t i = 0; i < got.size(); ++i)
            same += std::bit_cast<uint32_t>(model(c[i], k, [&](int q) { return term(i, q); })) == std::bit_cast<uint32_t>(got[i]);
          double share = double(same) / double(got.size());
          if (share > most) best = model, most = share;
        }
  size_t simple = 0;  // the shim's: fp32 products added one after another, then to C
  for (size_t i = 0; i < got.size(); ++i) {
    float v = 0;
    for (int q = 0; q < k; ++q) v += term(i, q).first * term(i, q).second;
    v += c[i];
    simple += std::bit_cast<uint32_t>(v) == std::bit_cast<uint32_t>(got[i]);
  }
  Line("tensor_core", name)("n", got.size())("group", best.group)("extra_bits", best.extra)("exponents_of_factors", best.factors)(
      "rounds_to_nearest", best.nearest)("share_of_bits", most)("share_of_the_shim's_model", double(simple) / double(got.size()));
}

/// Floats of `bits` mantissa bits, exponents low to high.
std::vector<float> spread_out(std::mt19937& g, size_t n, int bits, int low, int high) {
  std::vector<float> v(n);
  for (float& x : v) {
    float mantissa = 1.0f + float(g() >> (32 - bits)) * std::ldexp(1.0f, -bits);
    x = std::ldexp(g() % 2 ? mantissa : -mantissa, low + int(g() % uint32_t(high - low + 1)));
  }
  return v;
}

template <Kind kind>
void accumulation(const char* type, const char* set, int bits, int low, int high) {
  constexpr int trials = 128, k = kind == Kind::tf32 ? 8 : 16;
  std::mt19937 g(17);
  auto a = spread_out(g, trials * 16 * k, bits, low, high), b = spread_out(g, trials * 8 * k, bits, low, high);
  auto c = spread_out(g, trials * 128, 23, 2 * low, 2 * high);
  float* out = poisoned<float>(trials * 128);
  std::string name = std::string("mma.sync ") + type + ", " + set;
  LAUNCH((mma_once<kind>), trials, 32, 0, stream, sent(a), sent(b), sent(c), out);
  auto d = keep(name, out, trials * 128, {});
  fit(name, d, c, k,
      [&](size_t i, int q) { return std::pair(a[i / 128 * 16 * k + i % 128 / 8 * k + q], b[i / 128 * 8 * k + i % 8 * k + q]); });
}

void tensor_core(std::mt19937&) {
  accumulation<Kind::bf16>("bf16", "one binade", 7, 0, 0);
  accumulation<Kind::bf16>("bf16", "exponents -10 to 10", 7, -10, 10);
  accumulation<Kind::bf16>("bf16", "products near 2^-126", 7, -66, -60);
#ifdef __CUDACC__
  accumulation<Kind::fp16>("fp16", "one binade", 10, 0, 0);
  accumulation<Kind::fp16>("fp16", "exponents -7 to 7", 10, -7, 7);
  accumulation<Kind::tf32>("tf32", "one binade", 10, 0, 0);
  accumulation<Kind::tf32>("tf32", "exponents -10 to 10", 10, -10, 10);
#endif
}

void names(std::mt19937& g) {
  auto in = normal(g, 64);
  float *out = poisoned<float>(64 * kSlots), *box = poisoned<float>(64), *got = poisoned<float>(64);
  LAUNCH(wrappers, 1, 64, 512 + 1024, stream, sent(in), out, poisoned<int>(1, 0));
  std::vector<float> all(64 * kSlots), wanted(64);
  MUST(cudaMemcpyAsync(all.data(), out, all.size() * 4, cudaMemcpyDeviceToHost, stream));
  MUST(cudaStreamSynchronize(stream));
  const char* slots[kSlots] = {"shuffle_xor",
                               "shuffle",
                               "shuffle by lane 35",
                               "shuffle_down",
                               "shuffle in a mask",
                               "lane and warp",
                               "atomic_add",
                               "ldmatrix 0",
                               "ldmatrix 1",
                               "ldmatrix 2",
                               "ldmatrix 3",
                               "ldmatrix.trans 0",
                               "ldmatrix.trans 1",
                               "ldmatrix.trans 2",
                               "ldmatrix.trans 3",
                               "cp.async or zeros",
                               "cp.async or zeros, last",
                               "bar.sync id",
                               "sync_warp",
                               "rsqrt_fast"};
  for (int s = 0; s < kSlots; ++s) {
    std::vector<float> one(64);
    for (int i = 0; i < 64; ++i) one[i] = all[i * kSlots + s];
    keep(slots[s], sent(one), 64, {});
  }
  LAUNCH(message, 2, 64, 0, stream, sent(in), box, poisoned<unsigned>(1, 0), got);
  keep("release and acquire", got, 64, {});
}

void read(const char* file) {
  FILE* in = std::fopen(file, "rb");
  uint32_t sizes[2];
  while (in != nullptr && std::fread(sizes, 4, 2, in) == 2) {
    std::string name(sizes[0], ' ');
    std::vector<float> v(sizes[1]);
    if (std::fread(name.data(), 1, sizes[0], in) == sizes[0] && std::fread(v.data(), 4, sizes[1], in) == sizes[1]) reference[name] = v;
  }
  if (in != nullptr) std::fclose(in);
}

void write(const char* file) {
  FILE* out = std::fopen(file, "wb");
  if (out == nullptr) return;
  for (const auto& [name, v] : results) {
    uint32_t sizes[2] = {uint32_t(name.size()), uint32_t(v.size())};
    std::fwrite(sizes, 4, 2, out), std::fwrite(name.data(), 1, name.size(), out), std::fwrite(v.data(), 4, v.size(), out);
  }
  std::fclose(out);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 2) read(argv[2]);
  if (argc > 3) only = argv[3];
  stream = new_stream();
  auto run = [&](const char* part, auto cases) {
    std::mt19937 g(7);
    if (only.empty() || only == part) cases(g);
  };
  run("reduce", folds);
  run("norm", layer_norm);
  products(normal, "normal");
  products(whole, "whole numbers");
  run("names", names);
  run("model", tensor_core);
  if (argc > 1) write(argv[1]);
}
