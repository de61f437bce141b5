// Ops fused into a product are bitwise equal to the separate ops: linear, gelu, relu, silu and their gradients, add, sum.
#include <gtest/gtest.h>

#include <cstring>

#include "backend/kernel_side.h"
#include "base/float16.h"
#include "cpu_kernel.h"
#include "parts/gemm_plan.h"
#include "plain_problem.h"

namespace st {
namespace {

constexpr int64_t kRows = 75, kColumns = 141, kInner = 60;

/// An array of any of the three types.
struct Array {
  DType dtype;
  Shape shape;
  std::vector<std::byte> bytes;

  Array(DType type, const Shape& of) : dtype(type), shape(of), bytes(static_cast<size_t>(of.elements() * bytes_of(type))) {}
  Array(DType type, const Shape& of, uint64_t seed) : Array(type, of) {
    const std::vector<float> values = random_floats(of.elements(), seed);
    if (type == DType::f32) std::memcpy(bytes.data(), values.data(), bytes.size());
    for (size_t i = 0; type != DType::f32 && i < values.size(); ++i) {
      const uint16_t half = type == DType::bf16 ? bf16_of(values[i]) : f16_of(values[i]);
      std::memcpy(&bytes[2 * i], &half, 2);
    }
  }
  Operand operand() { return {address_of(bytes.data()), dtype, shape}; }
  GemmSide side() { return {bytes.data(), {kColumns, 1}, 0}; }
};

struct Layer {
  Array x, weight, bias, residual, pre;

  explicit Layer(DType type)
      : x(type, {kRows, kInner}, 1),
        weight(type, {kInner, kColumns}, 2),
        bias(type, {kColumns}, 3),
        residual(type, {kRows, kColumns}, 4),
        pre(type, {kRows, kColumns}, 5) {}
};

Array op(const CpuSet& set, Op op, std::vector<Array*> in, const Shape& out, const Attrs& attrs = {}) {
  Array y(in[0]->dtype, out);
  std::vector<Operand> operands;
  for (Array* array : in) operands.push_back(array->operand());
  EXPECT_TRUE(run_kernel(set, op, operands, {y.operand()}, attrs, 1));
  return y;
}

void run(const CpuSet& set, Layer& l, Array& c, const GemmEpilogue& epilogue, bool bias, int threads, int64_t tile) {
  GemmProblem p = plain_problem(kRows, kColumns, kInner);
  p.a_type = p.b_type = p.c_type = c.dtype;
  GemmWish wish;
  wish.tiles.mc = wish.tiles.nc = tile;
  GemmPlan plan(*set.gemm, choose_gemm(*set.gemm, p, wish, threads), std::make_unique<Workers>(threads), std::make_shared<MemorySource>());
  GemmOperands x{l.x.bytes.data(), l.weight.bytes.data(), c.bytes.data()};
  if (bias) x.bias = l.bias.bytes.data();
  x.epilogue = &epilogue;
  plan.run(x, 1, 0);
}

struct Named {
  GemmActivation activation;
  Op forward, backward;
  const char* approximate;
};
const Named kActivations[] = {{GemmActivation::relu, Op::relu, Op::relu_backward, nullptr},
                              {GemmActivation::gelu_tanh, Op::gelu, Op::gelu_backward, "tanh"},
                              {GemmActivation::gelu_erf, Op::gelu, Op::gelu_backward, "erf"},
                              {GemmActivation::silu, Op::silu, Op::silu_backward, nullptr}};

Attrs attributes(const Named& named) {
  return named.approximate == nullptr ? Attrs{} : Attrs{{"approximate", std::string(named.approximate)}};
}

const Shape kFull = {kRows, kColumns};
constexpr DType kTypes[] = {DType::f32, DType::bf16, DType::f16};

TEST(GemmEpilogue, BiasActivationAndResidualAreLinearActivationAndAdd) {
  for (const CpuSet& set : cpu_sets())
    for (const DType type : kTypes)
      for (const Named& named : kActivations) {
        Layer l(type);
        Array before = op(set, Op::linear, {&l.x, &l.weight, &l.bias}, kFull);
        Array after = op(set, named.forward, {&before}, kFull, attributes(named));
        Array expected = op(set, Op::add, {&after, &l.residual}, kFull);
        for (const int threads : {1, 3}) {
          Array c(type, kFull), kept(type, kFull);
          GemmEpilogue epilogue{named.activation, kept.side(), {}, l.residual.side(), nullptr};
          run(set, l, c, epilogue, true, threads, threads == 1 ? 0 : 40);
          ASSERT_EQ(kept.bytes, before.bytes) << set.name << " " << name_of(type);
          ASSERT_EQ(c.bytes, expected.bytes) << set.name << " " << name_of(type) << " " << static_cast<int>(named.activation);
        }
      }
}

TEST(GemmEpilogue, TimesTheDerivativeIsMatmulAndTheActivationsGradient) {
  for (const CpuSet& set : cpu_sets())
    for (const DType type : kTypes)
      for (const Named& named : kActivations) {
        Layer l(type);
        Array product = op(set, Op::matmul, {&l.x, &l.weight}, kFull);
        Array expected = op(set, named.backward, {&l.pre, &product}, kFull, attributes(named));
        Array c(type, kFull);
        GemmEpilogue epilogue{named.activation, {}, l.pre.side(), {}, nullptr};
        run(set, l, c, epilogue, false, 2, 0);
        ASSERT_EQ(c.bytes, expected.bytes) << set.name << " " << name_of(type) << " " << static_cast<int>(named.activation);
      }
}

TEST(GemmEpilogue, ColumnSumsAreTheSumOpsForAnyThreadsAndTiles) {
  for (const CpuSet& set : cpu_sets())
    for (const DType type : kTypes) {
      Layer l(type);
      Array product = op(set, Op::matmul, {&l.x, &l.weight}, kFull);
      Array expected = op(set, Op::sum, {&product}, {kColumns}, {{"axes", Ints{0}}});
      for (const int threads : {1, 2, 3}) {
        Array c(type, kFull), sums(type, {kColumns});
        GemmEpilogue epilogue;
        epilogue.column_sums = sums.bytes.data();
        run(set, l, c, epilogue, false, threads, 16 * threads);
        ASSERT_EQ(c.bytes, product.bytes);
        ASSERT_EQ(sums.bytes, expected.bytes) << set.name << " " << name_of(type) << " " << threads;
      }
    }
}

}  // namespace
}  // namespace st
