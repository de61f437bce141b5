// Properties of every op and any operands, tested on many random ones: rules refuse or answer, never crash; binding the batch before or
// after inference gives the same; a rank with shards of the inputs gets a shard of the whole result.
#include <algorithm>
#include <random>

#include "base/interval.h"
#include "ir/rules.h"
#include "refusal.h"

namespace st {
namespace {

class Chooser {
 public:
  explicit Chooser(uint32_t seed) : bits_(seed) {}
  int64_t below(int64_t n) { return static_cast<int64_t>(bits_() % static_cast<uint64_t>(n)); }
  template <class T>
  T one_of(std::initializer_list<T> choices) {
    return choices.begin()[below(static_cast<int64_t>(choices.size()))];
  }

 private:
  std::mt19937 bits_;
};

Shape any_shape(Chooser& choose) {
  Shape shape;
  for (int64_t rank = choose.below(5); rank > 0; --rank) shape.push_back(choose.one_of<int64_t>({-2, -1, 0, 1, 2, 2, 3, 4}));
  return shape;
}

// Mostly repeats earlier shapes and dtypes, so that many trials get past the first check.
std::vector<Type> any_inputs(Chooser& choose, const OpInfo& info) {
  std::vector<Type> in;
  for (const auto& input : info.inputs) {
    if (input.optional && choose.below(2) == 0) break;
    for (int64_t count = input.variadic ? choose.below(4) : 1; count > 0; --count) {
      Type type{choose.one_of({DType::f32, DType::f32, DType::f64, DType::bf16, DType::i64, DType::boolean}), any_shape(choose), {}};
      if (!in.empty() && choose.below(3) > 0) type.dtype = in[0].dtype;
      if (!in.empty() && choose.below(3) > 0) type.shape = in[static_cast<size_t>(choose.below(static_cast<int64_t>(in.size())))].shape;
      in.push_back(type);
    }
  }
  return in;
}

Attrs any_attrs(Chooser& choose, const OpInfo& info, const std::vector<Type>& in) {
  Attrs attrs;
  for (const auto& attr : info.attrs) {
    if (!attr.required && choose.below(2) == 0) continue;
    if (attr.name == "dtype") attrs.set("dtype", std::string(choose.one_of({"f32", "f64", "i32", "bool"})));
    if (attr.name == "name") attrs.set("name", std::string("of_a_host"));  // registered nowhere, so refused
    if (std::holds_alternative<bool>(attr.standard)) attrs.set(attr.name, choose.below(2) == 0);
    const auto set_inside = [&](auto value) {
      if (attr.domain.empty() || is_inside(static_cast<double>(value), attr.domain)) attrs.set(attr.name, value);
    };
    if (std::holds_alternative<int64_t>(attr.standard)) set_inside(choose.below(7) - 2);
    if (std::holds_alternative<double>(attr.standard)) set_inside(0.25 * static_cast<double>(choose.below(4)));
    if (!std::holds_alternative<Ints>(attr.standard)) continue;
    const Shape shape = !in.empty() && choose.below(2) == 0 ? in[0].shape : any_shape(choose);
    attrs.set(attr.name, Ints(shape.begin(), shape.end()));
  }
  return make_attrs(info.op, attrs);
}

Type bound(Type type, int64_t batch) {
  type.shape = type.shape.bind(batch);
  return type;
}

TEST(EveryRule, AnswersOrRefusesAndBindingCommutesWithInference) {
  constexpr int64_t kBatchSize = 5;  // a size that no fixed dimension has
  Chooser choose(20240607);
  std::vector<int> answered(kOps);
  for (int trial = 0; trial < 1000 * kOps; ++trial) {
    const auto& info = info_of(static_cast<Op>(trial % kOps));
    if (info.op == Op::load) continue;
    const auto in = any_inputs(choose, info);
    Attrs attrs = any_attrs(choose, info, in);
    std::vector<Type> out;
    try {
      out = infer({.op = info.op, .in = in, .attrs = attrs}, {});
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), Code::invalid_argument) << error.message();
      ASSERT_EQ(error.message().rfind(info.name, 0), 0U) << "the op is not named first: " << error.message();
      continue;
    }
    ++answered[static_cast<size_t>(trial % kOps)];
    std::vector<Type> bound_in;
    for (const auto& type : in) bound_in.push_back(bound(type, kBatchSize));
    if (attrs.has("shape")) {
      const Shape shape = Shape(attrs.ints("shape")).bind(kBatchSize);
      attrs.set("shape", Ints(shape.begin(), shape.end()));
    }
    for (auto& type : out) type = bound(type, kBatchSize);
    ASSERT_EQ(infer({.op = info.op, .in = bound_in, .attrs = attrs}, {}), out) << info.name;
  }
  // Random operands rarely suit ops with many operands; the samples below cover those.
  const auto seen = std::ranges::count_if(answered, [](int count) { return count > 0; });
  EXPECT_GT(seen, kOps * 3 / 4);
}

struct Sample {
  Op op;
  std::vector<Type> in;
  Attrs attrs = {};
};

std::vector<Sample> samples() {
  const auto f32 = [](const Shape& shape) { return Type{DType::f32, shape, {}}; };
  const Type i64_4{DType::i64, {4}, {}}, i64_46{DType::i64, {4, 6}, {}}, scalar{DType::f64, {}, {}};
  const Type q = f32({4, 6, 8, 16}), k = f32({4, 6, 4, 16}), lse = f32({4, 8, 6}), x = f32({4, 6, 8}), row = f32({4, 6}), g = f32({8});
  return {
      {Op::add, {x, x}},
      {Op::mul, {x, f32({6, 8})}},
      {Op::div, {f32({1, 8}), x}},
      {Op::where, {{DType::boolean, {4, 6, 1}, {}}, x, f32({})}},
      {Op::exp, {x}},
      {Op::gelu_backward, {x, x}},
      {Op::matmul, {x, f32({8, 10})}},
      {Op::matmul, {x, f32({4, 8, 10})}},
      {Op::matmul, {f32({4, 8, 6}), f32({10, 8})}, {{"transpose_a", true}, {"transpose_b", true}}},
      {Op::linear, {x, f32({8, 10}), f32({10})}},
      {Op::fused_linear, {x, f32({8, 10}), f32({10}), f32({4, 6, 10})}, {{"bias", true}, {"residual", true}, {"column_sums", true}}},
      {Op::layer_norm, {x, g, g}},
      {Op::layer_norm_backward, {x, g, row, row, x}},
      {Op::rms_norm, {x, g}},
      {Op::softmax, {x}, {{"axis", 1}}},
      {Op::softmax_backward, {x, x}},
      {Op::attention, {q, k, k}},
      {Op::attention_backward, {q, k, k, q, lse, q}},
      {Op::rope, {q}},
      {Op::embedding, {f32({10, 8}), i64_46}},
      {Op::gather, {row, i64_46}},
      {Op::argmax, {x}, {{"axis", 1}}},
      {Op::cross_entropy, {row, i64_4}},
      {Op::cross_entropy_backward, {row, i64_4, f32({4}), scalar}},
      {Op::fused_cross_entropy, {row, i64_4, scalar}},
      {Op::vocabulary_cross_entropy_backward, {row, i64_4, {DType::f64, {4, 2}, {}}, scalar}, {{"first", 0}, {"classes", 6}}},
      {Op::mse, {x, x, x}},
      {Op::huber_backward, {x, x, scalar}},
      {Op::sum, {x}, {{"axes", Ints{1}}}},
      {Op::mean, {x}, {{"axes", Ints{0, 2}}, {"keep_dims", true}}},
      {Op::transpose, {x}, {{"order", Ints{2, 0, 1}}}},
      {Op::concat, {x, x}, {{"axis", 1}}},
  };
}

TEST(EveryRule, ASampleWithTheBatchForItsFirstDimensionBindsToTheSample) {
  for (const auto& sample : samples()) {
    const Attrs attrs = make_attrs(sample.op, sample.attrs);
    auto symbolic = sample.in;
    for (auto& type : symbolic)
      if (type.shape.rank() > 0 && type.shape[0] == 4) type.shape[0] = kBatch;
    auto out = infer({.op = sample.op, .in = symbolic, .attrs = attrs}, {});
    for (auto& type : out) type = bound(type, 4);
    EXPECT_EQ(out, infer({.op = sample.op, .in = sample.in, .attrs = attrs}, {})) << name_of(sample.op);
  }
}

constexpr Mesh kTwoRanks{.data = 2, .tensor = 1, .stage = 1};

Type slice_of(Type type, int32_t dimension) {
  type.layout = Layout::sharded(MeshAxis::data, dimension);
  type.shape[dimension] /= 2;
  return type;
}

// The type of the whole value if `type` is that of one of two ranks.
Type whole_of(Type type) {
  const AxisLayout layout = type.layout[MeshAxis::data];
  if (layout.kind == AxisLayout::Kind::sharded) type.shape[layout.where] *= 2;
  type.layout = {};
  return type;
}

TEST(EveryLayoutRule, ARankThatSeesSlicesGetsASliceOfTheWholeAnswer) {
  for (const auto& sample : samples()) {
    const Attrs attrs = make_attrs(sample.op, sample.attrs);
    const auto whole = infer({.op = sample.op, .in = sample.in, .attrs = attrs}, {});
    int64_t ways = 1, accepted = 0;  // each operand whole, or sharded along any of its dimensions
    for (const auto& type : sample.in) ways *= type.shape.rank() + 1;
    for (int64_t way = 1; way < ways; ++way) {
      auto in = sample.in;
      int64_t rest = way;
      bool cuttable = true;
      for (auto& type : in) {
        const auto dimension = static_cast<int32_t>(rest % (type.shape.rank() + 1)) - 1;
        rest /= type.shape.rank() + 1;
        if (dimension < 0) continue;
        cuttable &= type.shape[dimension] > 1;
        if (cuttable) type = slice_of(type, dimension);
      }
      if (!cuttable) continue;
      std::vector<Type> out;
      try {
        out = infer({.op = sample.op, .in = in, .attrs = attrs}, kTwoRanks);
      } catch (const Error& error) {
        ASSERT_EQ(error.code(), Code::invalid_argument) << error.message();
        continue;
      }
      ++accepted;
      for (size_t i = 0; i < out.size(); ++i)
        EXPECT_EQ(whole_of(out[i]), whole[i]) << name_of(sample.op) << ", output " << i << " is " << text_of(out[i]) << ", first input "
                                              << text_of(in[0]);
    }
    EXPECT_GT(accepted, 0) << name_of(sample.op) << " takes no slices at all";
  }
}

}  // namespace
}  // namespace st
