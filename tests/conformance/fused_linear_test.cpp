#include <gtest/gtest.h>

#include "conformance.h"

namespace st::conformance {
namespace {

constexpr const char* kActivations[] = {"relu", "gelu_tanh", "gelu_erf", "silu"};

struct Sizes {
  Shape x;
  int64_t columns;
};
const Sizes kSizes[] = {{{1, 1}, 7}, {{3, 37}, 1}, {{3, 37}, 5}, {{2, 19, 37}, 129}, {{67, 37}, 33},
                        {{37}, 5},   {{0, 37}, 5}, {{3, 37}, 0}, {{3, 0}, 5}};

Shape like_y(const Sizes& sizes) {
  Shape y = sizes.x;
  y[y.rank() - 1] = sizes.columns;
  return y;
}

// As linear, plus what follows: an activation or a derivative of at most 1.13, one more term, column sums of up to 67 rows. A 16-bit
// pre-activation is rounded before the activation, and the two backends may round it differently.
const Cases fused_linear_cases(Op::fused_linear, {.largest = 16, .stored = 4}, [](Suite& s) {
  const auto weight = [&](const Sizes& sizes, bool transposed) {
    const int64_t inner = sizes.x.last();
    return s.normal(transposed ? Shape{sizes.columns, inner} : Shape{inner, sizes.columns});
  };
  for (const Sizes& sizes : kSizes)
    for (const bool transposed : {false, true}) {
      const auto product = [&] { return std::vector<Tensor>{s.normal(sizes.x), weight(sizes, transposed)}; };
      for (const std::string activation : kActivations) {
        auto forward = product();
        forward.push_back(s.normal({sizes.columns}));
        forward.push_back(s.normal(like_y(sizes)));
        s.add(forward, {{"transpose_weight", transposed},
                        {"bias", true},
                        {"activation", activation},
                        {"residual", true},
                        {"pre_activation", !transposed}});
        auto backward = product();
        backward.push_back(s.normal(like_y(sizes)));
        s.add(backward, {{"transpose_weight", transposed}, {"activation", activation}, {"backward", true}, {"column_sums", true}});
      }
      s.add(product(), {{"transpose_weight", transposed}, {"column_sums", true}});
    }
  // As autocast produces it: fp32 results of 16-bit operands, and fp32 for everything after the product.
  for (const Sizes& sizes : kSizes)
    for (const bool backward : {false, true}) {
      OpCase& made = s.add_special({s.normal(sizes.x), s.normal({sizes.x.last(), sizes.columns}),
                                    s.normal(backward ? like_y(sizes) : Shape{sizes.columns}), s.normal(like_y(sizes))},
                                   {{"bias", !backward},
                                    {"activation", std::string("silu")},
                                    {"backward", backward},
                                    {"residual", true},
                                    {"pre_activation", !backward},
                                    {"column_sums", true},
                                    {"result", std::string("f32")}});
      made.dtypes = {DType::f32, DType::bf16, DType::f16};
      made.statistics = {2, 3};
    }
});

const Attrs kEverything = {
    {"bias", true}, {"activation", std::string("silu")}, {"residual", true}, {"pre_activation", true}, {"column_sums", true}};

/// The same with the weight packed by the backend.
Result run_packed(Backend& backend, OpCase c, int threads) {
  const Tensor& weight = c.in[1];
  const Shape x = c.in[0].shape();
  OpCase packing{.op = Op::pack, .name = "", .in = {weight}, .attrs = {{"rows", x.elements(0, x.rank() - 1)}}};
  packing.attrs.set("transpose_weight", c.attrs.flag("transpose_weight"));
  if (c.attrs.has("result")) packing.attrs.set("result", c.attrs.word("result"));
  packing.slots = {Tensor(DType::u8, {8 * weight.elements() + (1 << 16)})};  // at most doubles, or whole panels
  c.in.push_back(run(backend, packing, threads).slots[0]);
  c.attrs.set("packed", true);
  return run(backend, c, threads);
}

TEST(FusedLinear, HasTheSameBitsFromAPackedWeight) {
  std::vector<OpCase> made;
  Suite s(Op::fused_linear, {}, made);
  for (const int64_t rows : {1, 8, 20, 300})
    for (const bool transposed : {false, true}) {
      Attrs attrs = kEverything;
      attrs.set("transpose_weight", transposed);
      s.add({s.normal({rows, 70}), s.normal(transposed ? Shape{97, 70} : Shape{70, 97}), s.normal({97}), s.normal({rows, 97})}, attrs);
    }
  for (const BackendUnderTest& candidate : backends_and_reference()) {
    const auto backend = candidate.make();
    if (!backend->has_kernel(Op::pack)) continue;  // a device that asks for no packed weight
    for (const OpCase& c : made)
      for (const DType dtype : {DType::f32, DType::bf16}) {
        const OpCase of = in_dtype(c, dtype);
        EXPECT_EQ(run_packed(*backend, of, 2).out, run(*backend, of).out) << candidate.name << " " << c.name << " in " << name_of(dtype);
      }
    for (OpCase c : made) {  // fp32 results of 16-bit operands, with an fp32 bias and residual
      c.statistics = {2, 3};
      OpCase of = in_dtype(c, DType::bf16);
      of.attrs.set("result", std::string("f32"));
      EXPECT_EQ(run_packed(*backend, of, 2).out, run(*backend, of).out) << candidate.name << " " << c.name << " with sums kept";
    }
  }
}

/// The ops that a fused_linear replaces, in order.
std::vector<Tensor> one_by_one(Backend& backend, const OpCase& c, Op activation, const Attrs& of_activation) {
  const auto one = [&](Op op, std::vector<Tensor> in, const Attrs& attrs = {}) {
    return run(backend, {.op = op, .name = "", .in = std::move(in), .attrs = attrs}).out[0];
  };
  const Tensor before = one(Op::linear, {c.in[0], c.in[1], c.in[2]});
  const Tensor y = one(Op::add, {one(activation, {before}, of_activation), c.in[3]});
  return {y, before, one(Op::sum, {y}, {{"axes", Ints{0}}})};
}

TEST(FusedLinear, HasTheBitsOfTheOpsThatItStandsFor) {
  std::vector<OpCase> made;
  Suite s(Op::fused_linear, {}, made);
  s.add({s.normal({75, 60}), s.normal({60, 141}), s.normal({141}), s.normal({75, 141})}, kEverything);
  for (const BackendUnderTest& candidate : backends_and_reference()) {
    const auto backend = candidate.make();
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
      const OpCase c = in_dtype(made[0], dtype);
      EXPECT_EQ(run(*backend, c).out, one_by_one(*backend, c, Op::silu, {})) << candidate.name << " in " << name_of(dtype);
    }
  }
}

}  // namespace
}  // namespace st::conformance
