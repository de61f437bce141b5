// Elementwise arithmetic of the device against this CPU bit by bit, casts of all floats, and the errors of functions over all floats.
// Build the host's side with -mfma -ffp-contract=off.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <xmmintrin.h>

#include <bit>
#include <cmath>
#include <random>

#include "probe.h"

using namespace probe;

namespace {

enum class Op { add, multiply, fma, divide, root, reciprocal };
const char* const kOps[] = {"add", "multiply", "fma", "divide", "square root", "1 / x"};

template <bool flush>
__global__ void arithmetic_kernel(Op op, const float* a, const float* b, const float* c, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float x = a[i], y = b[i], z = c[i], r = 0;
#define ST_PTX2(name)                                               \
  if constexpr (flush)                                              \
    asm(name ".rn.ftz.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y)); \
  else                                                              \
    asm(name ".rn.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y))
#define ST_PTX1(name)                                   \
  if constexpr (flush)                                  \
    asm(name ".rn.ftz.f32 %0, %1;" : "=f"(r) : "f"(x)); \
  else                                                  \
    asm(name ".rn.f32 %0, %1;" : "=f"(r) : "f"(x))
  switch (op) {
    case Op::add:
      ST_PTX2("add");
      break;
    case Op::multiply:
      ST_PTX2("mul");
      break;
    case Op::divide:
      ST_PTX2("div");
      break;
    case Op::root:
      ST_PTX1("sqrt");
      break;
    case Op::reciprocal:
      ST_PTX1("rcp");
      break;
    case Op::fma:
      if constexpr (flush)
        asm("fma.rn.ftz.f32 %0, %1, %2, %3;" : "=f"(r) : "f"(x), "f"(y), "f"(z));
      else
        asm("fma.rn.f32 %0, %1, %2, %3;" : "=f"(r) : "f"(x), "f"(y), "f"(z));
  }
  out[i] = r;
}

/// As nvcc compiles it without options: a * b + c, a / b, sqrtf(a).
__global__ void compiled_kernel(int which, const float* a, const float* b, const float* c, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = which == 0 ? a[i] * b[i] + c[i] : which == 1 ? a[i] / b[i] : sqrtf(a[i]);
}

__attribute__((noinline)) void on_cpu(Op op, const float* a, const float* b, const float* c, float* out, int n, bool flush) {
  unsigned before = _mm_getcsr();
  _mm_setcsr(flush ? before | 0x8040 : before & ~0x8040u);
  for (int i = 0; i < n; ++i) switch (op) {
      case Op::add:
        out[i] = a[i] + b[i];
        break;
      case Op::multiply:
        out[i] = a[i] * b[i];
        break;
      case Op::divide:
        out[i] = a[i] / b[i];
        break;
      case Op::root:
        out[i] = _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(a[i])));
        break;
      case Op::reciprocal:
        out[i] = 1.0f / a[i];
        break;
      case Op::fma:
        out[i] = __builtin_fmaf(a[i], b[i], c[i]);
        break;
    }
  _mm_setcsr(before);
}

float with_exponent(std::mt19937& g, int exponent) {
  return std::ldexp(1.0f + float(g() >> 9) * 0x1p-23f, exponent) * (g() % 2 ? 1.0f : -1.0f);
}

void draw(std::mt19937& g, Op op, const std::string& set, float& a, float& b, float& c) {
  auto within = [&](int low, int high) { return low + int(g() % uint32_t(high - low + 1)); };
  if (set == "any bits") {
    a = std::bit_cast<float>(uint32_t(g())), b = std::bit_cast<float>(uint32_t(g())), c = std::bit_cast<float>(uint32_t(g()));
  } else if (set == "ordinary") {
    a = with_exponent(g, within(-10, 10)), b = with_exponent(g, within(-10, 10)), c = with_exponent(g, within(-10, 10));
  } else if (set == "at 2^-126") {  // the exact result is within a few ulp of the smallest normal number
    int e = within(-100, -5), ulps = within(-3, 3);
    a = with_exponent(g, e);
    if (op == Op::divide) {
      b = std::ldexp(a, 126);
      a = std::bit_cast<float>(std::bit_cast<uint32_t>(a) + uint32_t(ulps));
    } else {
      b = std::bit_cast<float>(std::bit_cast<uint32_t>(float(1.0 / double(std::ldexp(a, -e)))) + uint32_t(ulps));
      b = std::ldexp(b, -126 - e);
      c = std::ldexp(with_exponent(g, 0), -126 - within(0, 1) * 100);
    }
  } else {  // the result is near the smallest normal number, or an operand below it
    int e = within(-149, 20);
    a = with_exponent(g, e), c = with_exponent(g, within(-128, -124));
    b = with_exponent(g, op == Op::divide ? e + 126 + within(-2, 2) : op == Op::add ? e + within(-1, 1) : -126 - e + within(-2, 2));
    if (op == Op::reciprocal) a = with_exponent(g, within(124, 127));
  }
}

struct Compared {
  int64_t differ = 0, nan_bits = 0, nan_one_side = 0;
  std::string example;
  void operator()(float a, float b, float c, float gpu, float cpu) {
    bool x = std::isnan(gpu), y = std::isnan(cpu), same = std::bit_cast<uint32_t>(gpu) == std::bit_cast<uint32_t>(cpu);
    nan_bits += x && y && !same, nan_one_side += x != y, differ += !x && !y && !same;
    if (x == y && !x && !same && example.empty()) {
      char text[120];
      std::snprintf(text, sizeof text, "%a %a %a: gpu %a, cpu %a", double(a), double(b), double(c), double(gpu), double(cpu));
      example = text;
    }
  }
};

void arithmetic() {
  constexpr int n = 1 << 22;
  std::mt19937 g(5);
  cudaStream_t stream = new_stream();
  std::vector<float> a(n), b(n), c(n), gpu(n), cpu(n);
  float *da = on_device<float>(n), *db = on_device<float>(n), *dc = on_device<float>(n), *out = on_device<float>(n);
  auto send = [&] {
    for (auto [to, from] : {std::pair{da, &a}, std::pair{db, &b}, std::pair{dc, &c}})
      MUST(cudaMemcpy(to, from->data(), n * 4, cudaMemcpyHostToDevice));
  };
  auto compare = [&](const std::string& name, const std::string& set, const std::string& mode) {
    MUST(cudaMemcpyAsync(gpu.data(), out, n * 4, cudaMemcpyDeviceToHost, stream));
    MUST(cudaStreamSynchronize(stream));
    Compared compared;
    for (int i = 0; i < n; ++i) compared(a[i], b[i], c[i], gpu[i], cpu[i]);
    Line line("arithmetic", name);
    line("set", set)("mode", mode)("n", n)("differ", compared.differ)("nan_with_other_bits", compared.nan_bits)("nan_on_one_side",
                                                                                                                compared.nan_one_side);
    if (!compared.example.empty()) line("example", compared.example);
  };
  for (const char* set : {"any bits", "ordinary", "near underflow", "at 2^-126"})
    for (Op op : {Op::add, Op::multiply, Op::fma, Op::divide, Op::root, Op::reciprocal}) {
      for (int i = 0; i < n; ++i) draw(g, op, set, a[i], b[i], c[i]);
      send();
      for (bool flush : {false, true}) {
        if (flush)
          arithmetic_kernel<true><<<n / 256, 256, 0, stream>>>(op, da, db, dc, out, n);
        else
          arithmetic_kernel<false><<<n / 256, 256, 0, stream>>>(op, da, db, dc, out, n);
        on_cpu(op, a.data(), b.data(), c.data(), cpu.data(), n, flush);
        compare(kOps[int(op)], set, flush ? "flush (.ftz; MXCSR FTZ and DAZ)" : "IEEE");
      }
      int which = op == Op::fma ? 0 : op == Op::divide ? 1 : op == Op::root ? 2 : -1;
      if (which < 0) continue;
      compiled_kernel<<<n / 256, 256, 0, stream>>>(which, da, db, dc, out, n);
      on_cpu(op, a.data(), b.data(), c.data(), cpu.data(), n, false);
      compare(which == 0 ? "a * b + c against the CPU's fma" : which == 1 ? "a / b" : "sqrtf(a)", set, "nvcc's defaults");
    }
}

/// Round to nearest, ties to even, in integers; a NaN keeps its upper bits and becomes quiet, as on x86.
__device__ uint16_t bf16_by_integers(uint32_t bits) {
  if ((bits & 0x7fffffffu) > 0x7f800000u) return uint16_t(bits >> 16 | 0x40);
  return uint16_t((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}
__device__ uint16_t fp16_by_integers(uint32_t bits) {
  uint32_t sign = bits >> 16 & 0x8000u, rest = bits & 0x7fffffffu;
  if (rest > 0x7f800000u) return uint16_t(sign | 0x7e00u | (rest >> 13 & 0x1ffu));
  if (rest >= 0x477ff000u) return uint16_t(sign | 0x7c00u);
  if (rest < 0x33000001u) return uint16_t(sign);
  int exponent = int(rest >> 23) - 127;
  uint32_t mantissa = (rest & 0x7fffffu) | 0x800000u;
  int shift = exponent < -14 ? 13 + (-14 - exponent) : 13;
  uint32_t kept = mantissa >> shift, cut = mantissa & ((1u << shift) - 1), tie = 1u << (shift - 1);
  kept += cut > tie || (cut == tie && (kept & 1));
  return uint16_t(sign | (exponent < -14 ? kept : kept + (uint32_t(exponent + 14) << 10)));
}

__global__ void cast_kernel(
    unsigned long long* counts) {  // over all floats: {bf16 differs, bf16 NaN bits differ, fp16 differs, fp16 NaN bits differ}
  for (uint64_t i = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < 1ull << 32; i += uint64_t(gridDim.x) * blockDim.x) {
    float x = __uint_as_float(uint32_t(i));
    bool nan = isnan(x);
    if (__bfloat16_as_ushort(__float2bfloat16_rn(x)) != bf16_by_integers(uint32_t(i))) atomicAdd(counts + nan, 1ull);
    if (__half_as_ushort(__float2half_rn(x)) != fp16_by_integers(uint32_t(i))) atomicAdd(counts + 2 + nan, 1ull);
  }
}

template <int which>
__device__ float approximate(float x) {
  float r = 0;
  switch (which) {
    case 0:
      return expf(x);
    case 1:
      return __expf(x);
    case 2:
      return exp2f(x);
    case 3:
      asm("ex2.approx.f32 %0, %1;" : "=f"(r) : "f"(x));
      return r;
    case 4:
      return tanhf(x);
    case 5:
      asm("tanh.approx.f32 %0, %1;" : "=f"(r) : "f"(x));
      return r;
    case 6:
      return logf(x);
    case 7:
      return __logf(x);
    case 8:
      return erff(x);
    case 9:
      return rsqrtf(x);
    case 10:
      asm("rcp.approx.f32 %0, %1;" : "=f"(r) : "f"(x));
      return r;
    default:
      asm("sqrt.approx.f32 %0, %1;" : "=f"(r) : "f"(x));
      return r;
  }
}
template <int which>
__device__ double exact(double x) {
  return which < 2     ? exp(x)
         : which < 4   ? exp2(x)
         : which < 6   ? tanh(x)
         : which < 8   ? log(x)
         : which == 8  ? erf(x)
         : which == 9  ? rsqrt(x)
         : which == 10 ? 1 / x
                       : sqrt(x);
}
const char* const kFunctions[] = {"expf", "__expf", "exp2f", "ex2.approx", "tanhf",      "tanh.approx",
                                  "logf", "__logf", "erff",  "rsqrtf",     "rcp.approx", "sqrt.approx"};

/// Over all floats: worst error in ulp of a normal result with its argument, of a result below 2^-126, and results that are NaN, infinite
/// or finite where the exact one, rounded, is not the same kind. Subnormal arguments are left out.
template <int which>
__global__ void error_kernel(unsigned long long* worst, unsigned long long* small, unsigned long long* kinds) {
  for (uint64_t i = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < 1ull << 32; i += uint64_t(gridDim.x) * blockDim.x) {
    float x = __uint_as_float(uint32_t(i));
    if (fabsf(x) < 0x1p-126f) continue;
    double right = exact<which>(double(x));
    float got = approximate<which>(x), rounded = float(right);
    if (isnan(got) != isnan(rounded) || isinf(got) != isinf(rounded)) {
      atomicAdd(kinds, 1ull);
    } else if (isfinite(rounded)) {
      bool below = fabs(right) < 0x1p-126;
      double unit = below ? 0x1p-149 : ldexp(1.0, ilogb(right) - 23);
      float error = float(fabs(double(got) - right) / unit);
      auto* to = below ? small : worst;
      unsigned long long packed = (unsigned long long)(__float_as_uint(error)) << 32 | uint32_t(i);
      if (packed > *reinterpret_cast<volatile unsigned long long*>(to)) atomicMax(to, packed);
    }
  }
}

template <int which>
void errors() {
  auto* counts = on_device<unsigned long long>(3);
  unsigned long long back[3];
  MUST(cudaMemset(counts, 0, sizeof back));
  error_kernel<which><<<1056, 256>>>(counts, counts + 1, counts + 2);
  MUST(cudaMemcpy(back, counts, sizeof back, cudaMemcpyDeviceToHost));
  auto high = [](unsigned long long v) { return std::bit_cast<float>(uint32_t(v >> 32)); };
  char at[32];
  std::snprintf(at, sizeof at, "%a", double(std::bit_cast<float>(uint32_t(back[0]))));
  Line("function", kFunctions[which])("worst_ulp", high(back[0]))("at", at)("worst_ulp_of_2^-149_below_2^-126", high(back[1]))("other_kind",
                                                                                                                               back[2]);
  MUST(cudaFree(counts));
  if constexpr (which < 11) errors<which + 1>();
}

void casts() {
  auto* counts = on_device<unsigned long long>(4);
  unsigned long long back[4];
  MUST(cudaMemset(counts, 0, sizeof back));
  cast_kernel<<<1056, 256>>>(counts);
  MUST(cudaMemcpy(back, counts, sizeof back, cudaMemcpyDeviceToHost));
  Line("cast", "fp32 to bf16, all 2^32")("differ", back[0])("nan_with_other_bits", back[1]);
  Line("cast", "fp32 to fp16, all 2^32")("differ", back[2])("nan_with_other_bits", back[3]);
}

}  // namespace

int main() {
  arithmetic();
  casts();
  errors<0>();
}
