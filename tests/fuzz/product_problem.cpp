#include "product_problem.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "base/float16.h"
#include "base/text.h"

namespace st::fuzz {
namespace {

constexpr int64_t kMostElements = 8'000'000;  // of a matrix and its gaps

int64_t draw_depth(Draw& draw) {  // K: often near the edges of its blocks
  static constexpr std::array<int64_t, 24> kEdges = {255,  256,  257,  288,  511,  512,  513,  514,  767,  768,  769,  770,
                                                     1023, 1024, 1025, 1026, 1536, 1537, 2047, 2048, 2049, 2051, 2500, 3000};
  if (draw.chance(0.6)) return draw_size(draw);
  return draw.chance(0.03) ? draw.in(8180, 8600) : draw.pick(kEdges);
}

/// Shrinks large sizes until the product takes milliseconds.
void fit_work(Draw& draw, GemmProblem& p) {
  const int64_t most = draw.chance(0.04) ? 20'000'000 : draw.chance(0.4) ? 2'000'000 : 400'000;
  while (p.m * p.n * p.k * std::max<int64_t>(p.batch, 1) > most) {
    int64_t& size = *draw.pick(std::array{&p.m, &p.n, &p.k});
    if (size > 32) {
      size = size * 2 / 3 + draw.in(0, 3);
    } else if (size > 3) {
      --size;
    } else if (p.batch > 1) {
      --p.batch;
    }
  }
}

void draw_types(Draw& draw, GemmProblem& p, bool mostly_bf16) {
  const auto type = [&](double float_share) { return draw.chance(float_share) ? DType::f32 : draw.chance(0.6) ? DType::bf16 : DType::f16; };
  if (mostly_bf16 && draw.chance(0.93)) {  // a bf16 set passes other types on to a set without bf16
    p.a_type = p.b_type = DType::bf16;
  } else if (draw.chance(0.45)) {
    p.a_type = type(0.4);
    p.b_type = type(0.4);
  }
  p.c_type = draw.chance(0.6) ? p.a_type : type(0.5);
}

void draw_layout(Draw& draw, GemmProblem& p) {
  const Placing a = draw_place(draw, place_of_a(p), 0.3, 0.08), b = draw_place(draw, place_of_b(p), 0.35, 0.08),
                c = draw_place(draw, place_of_c(p), 0.2, 0.08);
  p.a = a.at, p.b = b.at, p.c = c.at;
  p.a_batch = draw.chance(0.25) ? 0 : a.step;
  p.b_batch = draw.chance(0.35) ? 0 : b.step;
  p.c_batch = c.step;
  if (p.batch > 1 && p.c.column == 1 && draw.chance(0.3)) {  // as in attention heads: matrices side by side
    p.c_batch = p.n + draw.in(0, 3);
    p.c.row = p.c_batch * p.batch + draw.in(0, 2);
  }
}

void draw_factors(Draw& draw, GemmProblem& p, bool exact) {
  static constexpr std::array<float, 8> kAlphas = {1, 1, 1, 1, 2, -1, 0.5F, 0};
  static constexpr std::array<float, 9> kBetas = {0, 0, 0, 0, 1, 1, -1, 0.5F, 2};
  p.alpha = !exact && draw.chance(0.2) ? static_cast<float>(2 * draw.number()) : draw.pick(kAlphas);
  p.beta = draw.pick(kBetas);
  p.bias = draw.chance(0.4);
}

Stages draw_stages(Draw& draw) {
  if (draw.chance(0.55)) return {};
  return {static_cast<GemmActivation>(draw.in(0, 4)), draw.chance(0.4), draw.chance(0.3), draw.chance(0.4), draw.chance(0.4)};
}

void scatter_specials(Draw& draw, std::vector<float>& values, double share) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  static constexpr std::array<float, 5> kSpecials = {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN(), 0, -0.0F};
  if (values.empty() || !draw.chance(share)) return;
  for (int i = 0; i < 3; ++i) values[static_cast<size_t>(draw.in(0, static_cast<int64_t>(values.size()) - 1))] = draw.pick(kSpecials);
}

void draw_contents(Draw& draw, ProductProblem& product) {
  const GemmProblem& p = product.gemm;
  Contents& x = product.contents;
  const auto fill = [&](std::vector<float>& values, int64_t count, DType type) {
    values.resize(static_cast<size_t>(count));
    for (float& v : values) v = product.exact ? static_cast<float>(draw.in(-3, 3)) : rounded(type, 2 * draw.number());
  };
  const int64_t of_c = place_of_c(p).count();
  fill(x.a, place_of_a(p).count(), p.a_type);
  fill(x.b, place_of_b(p).count(), p.b_type);
  fill(x.c, of_c, p.c_type);
  fill(x.bias, p.n, p.c_type);
  fill(x.derivative, of_c, p.c_type);
  fill(x.residual, of_c, p.c_type);
  if (!product.special) return;
  scatter_specials(draw, x.a, 0.7);
  scatter_specials(draw, x.b, 0.7);
  scatter_specials(draw, x.c, 0.3);
  scatter_specials(draw, x.bias, 0.3);
  scatter_specials(draw, x.residual, 0.3);
}

bool is_problem(const GemmProblem& p) {
  if (std::max({place_of_a(p).extent(), place_of_b(p).extent(), place_of_c(p).extent()}) > kMostElements) return false;
  try {
    check_problem(p, "random product");
    check_layout(p, "random product");
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

int64_t draw_size(Draw& draw) {
  static constexpr std::array<int64_t, 17> kEdges = {63, 64, 65, 96, 127, 128, 129, 130, 160, 192, 255, 256, 257, 320, 336, 512, 513};
  const double x = draw.fraction();
  if (x < 0.03) return 0;
  if (x < 0.10) return 1;
  if (x < 0.52) return draw.in(2, 48);
  if (x < 0.70) return 16 * draw.in(1, 11) + draw.in(-1, 1);
  if (x < 0.85) return draw.pick(kEdges);
  if (x < 0.94) return draw.in(2, 300);
  return x < 0.985 ? draw.in(300, 1100) : draw.in(1000, 3000);
}

Placing draw_place(Draw& draw, const Placing& like, double columns, double general) {
  const int64_t m = std::max<int64_t>(like.rows, 1), n = std::max<int64_t>(like.columns, 1), gap = draw.chance(0.5) ? 0 : draw.in(1, 37);
  Placing place = like;
  if (draw.chance(general)) {
    const int64_t apart = draw.in(2, 4);
    place.at = draw.chance(0.4) ? MatrixStrides{apart, m * apart + gap} : MatrixStrides{n * apart + gap, apart};
  } else {
    place.at = draw.chance(columns) ? MatrixStrides{1, m + gap} : MatrixStrides{n + gap, 1};
  }
  if (like.rows == 1 && draw.chance(0.2)) place.at.row = draw.in(0, 1);  // the stride of a size of 1 is unused
  if (like.columns == 1 && draw.chance(0.2)) place.at.column = draw.in(0, 1);
  Placing one = place;
  one.batch = 1;
  place.step = one.extent() + (draw.chance(0.5) ? 0 : draw.in(1, 40));
  return place;
}

Placing place_of_a(const GemmProblem& p) {
  return {p.m, p.k, p.a_batch == 0 ? std::min<int64_t>(1, p.batch) : p.batch, p.a, p.a_batch, p.a_type};
}
Placing place_of_b(const GemmProblem& p) {
  return {p.k, p.n, p.b_batch == 0 ? std::min<int64_t>(1, p.batch) : p.batch, p.b, p.b_batch, p.b_type};
}
Placing place_of_c(const GemmProblem& p) { return {p.m, p.n, p.batch, p.c, p.c_batch, p.c_type}; }

uint32_t bits_at(const std::byte* data, DType type, int64_t at) {
  uint32_t bits = 0;
  const int64_t bytes = bytes_of(type);
  std::memcpy(&bits, data + at * bytes, static_cast<size_t>(bytes));  // little-endian, like all machines of this library
  return bits;
}

float value_of(uint32_t bits, DType type) {
  if (type == DType::f32) return std::bit_cast<float>(bits);
  const auto half = static_cast<uint16_t>(bits);
  return type == DType::bf16 ? f32_of_bf16(half) : f32_of_f16(half);
}

void put(std::byte* data, DType type, int64_t at, float value) {
  const uint32_t bits = type == DType::f32 ? std::bit_cast<uint32_t>(value) : type == DType::bf16 ? bf16_of(value) : f16_of(value);
  const int64_t bytes = bytes_of(type);
  std::memcpy(data + at * bytes, &bits, static_cast<size_t>(bytes));
}

float rounded(DType type, double value) {
  const auto f = static_cast<float>(value);
  return type == DType::f32 ? f : type == DType::bf16 ? f32_of_bf16(bf16_of(f)) : f32_of_f16(f16_of(f));
}

std::optional<ProductProblem> draw_product(Draw& draw, bool mostly_bf16) {
  ProductProblem product;
  GemmProblem& p = product.gemm;
  p.m = draw.chance(0.35) ? draw.in(1, 48) : draw_size(draw);  // few rows have their own kernels
  p.n = draw_size(draw);
  p.k = draw_depth(draw);
  p.batch = draw.chance(0.7) ? 1 : draw.chance(0.1) ? 0 : draw.in(2, 5);
  fit_work(draw, p);
  draw_types(draw, p, mostly_bf16);
  draw_layout(draw, p);
  product.exact = draw.chance(0.4);
  product.special = !product.exact && draw.chance(0.5);
  draw_factors(draw, p, product.exact);
  product.stages = draw_stages(draw);
  if (!is_problem(p)) return std::nullopt;
  draw_contents(draw, product);
  return product;
}

TileSchedule draw_wish(Draw& draw) {
  const auto size = [&](double share, int64_t most) { return draw.chance(share) ? draw.in(1, most) : 0; };
  TileSchedule wish;
  wish.mr = size(0.3, 40);
  wish.nr = size(0.1, 64);
  wish.mc = size(0.4, 130);
  wish.nc = size(0.4, 300);
  wish.kc = size(0.4, draw.chance(0.5) ? 64 : 1200);
  wish.block_m = size(0.4, 300);
  wish.block_n = size(0.4, 600);
  wish.order = draw.chance(0.5) ? LoopOrder::n_k_m : LoopOrder::n_m_k;
  wish.b = draw.chance(0.6) ? Packing::choose : draw.chance(0.5) ? Packing::packed : Packing::in_place;
  return wish;
}

std::string text_of(const GemmProblem& p) {
  const auto matrix = [](const char* name, const MatrixStrides& at, int64_t step, DType type) {
    return text(name, " ", type, " {", at.row, ", ", at.column, "} + ", step);
  };
  return text("m ", p.m, " n ", p.n, " k ", p.k, " batch ", p.batch, matrix(", a", p.a, p.a_batch, p.a_type),
              matrix(", b", p.b, p.b_batch, p.b_type), matrix(", c", p.c, p.c_batch, p.c_type), ", alpha ", p.alpha, " beta ", p.beta,
              p.bias ? " bias" : "");
}

std::string text_of(const ProductProblem& product) {
  static constexpr std::array<const char*, 5> kActivations = {"", ", relu", ", gelu_tanh", ", gelu_erf", ", silu"};
  const Stages& s = product.stages;
  return text(text_of(product.gemm),
              product.exact     ? ", integers"
              : product.special ? ", specials"
                                : "",
              kActivations[static_cast<size_t>(s.activation)], s.pre_activation ? ", pre-activation" : "",
              s.derivative ? ", derivative" : "", s.residual ? ", residual" : "", s.column_sums ? ", column sums" : "");
}

}  // namespace st::fuzz
