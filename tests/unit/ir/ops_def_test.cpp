#include <limits>
#include <set>

#include "ir/op.h"
#include "refusal.h"

namespace st {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<Op> all_ops() {
  std::vector<Op> ops;
  for (int32_t i = 0; i < kOps; ++i) ops.push_back(static_cast<Op>(i));
  return ops;
}

TEST(OpsDef, EveryRowParsesAndIsFoundByItsName) {
  std::set<std::string_view> names;
  for (const Op op : all_ops()) {
    const OpInfo& info = info_of(op);
    EXPECT_EQ(info.op, op);
    EXPECT_EQ(op_named(info.name), op);
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_FALSE(info.shape_rule.empty() || info.layout_rule.empty() || info.gradient.empty()) << info.name;
  }
}

TEST(OpsDef, DefaultsBuildAttributesOfEveryOpThatRequiresNone) {
  for (const Op op : all_ops()) {
    const OpInfo& info = info_of(op);
    Attrs given;
    for (const auto& attr : info.attrs)
      if (attr.required) given.set(attr.name, attr.name == "dtype" ? AttrValue(std::string("f32")) : attr.standard);
    EXPECT_EQ(make_attrs(op, given).all().size(), info.attrs.size()) << info.name;
  }
}

TEST(OpsDef, OptionalAndVariadicInputsAreMarked) {
  const auto& loss = info_of(Op::cross_entropy).inputs;
  ASSERT_EQ(loss.size(), 3U);
  EXPECT_EQ(loss[2].name, "weights");
  EXPECT_TRUE(loss[2].optional);
  const auto& concat = info_of(Op::concat).inputs;
  ASSERT_EQ(concat.size(), 1U);
  EXPECT_EQ(concat[0].name, "xs");
  EXPECT_TRUE(concat[0].variadic);
}

TEST(OpsDef, ReadsInfinityEmptyListsAndChoices) {
  const auto& clamp = info_of(Op::clamp).attrs;
  EXPECT_EQ(std::get<double>(clamp[0].standard), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(std::get<double>(clamp[1].standard), std::numeric_limits<double>::infinity());
  EXPECT_EQ(std::get<Ints>(info_of(Op::sum).attrs[0].standard), Ints{});
  EXPECT_THAT(info_of(Op::gelu).attrs[0].words, ElementsAre("tanh", "erf"));
  EXPECT_EQ(std::get<std::string>(info_of(Op::gelu).attrs[0].standard), "tanh");
}

TEST(OpsDef, OnlyElementwiseOpsMayWriteOverTheirInput) {
  for (const Op op : {Op::add, Op::mul, Op::div, Op::affine, Op::cast, Op::gelu_backward, Op::dropout, Op::where})
    EXPECT_TRUE(info_of(op).elementwise) << name_of(op);
  for (const Op op : {Op::matmul, Op::softmax, Op::layer_norm, Op::transpose, Op::sum, Op::broadcast_to, Op::load, Op::store, Op::gather})
    EXPECT_FALSE(info_of(op).elementwise) << name_of(op);
}

TEST(OpsDef, LoadReshapeAndTensorShareAreViewsAndNothingElseIs) {
  for (const Op op : all_ops()) EXPECT_EQ(is_view(op), op == Op::load || op == Op::reshape || op == Op::tensor_share) << name_of(op);
}

TEST(OpsDef, AnUnknownOpNamesTheNearest) {
  EXPECT_THAT(refusal(Code::not_found, [] { op_named("matmull"); }), HasSubstr("did you mean \"matmul\"?"));
  EXPECT_THAT(refusal(Code::not_found, [] { op_named("convolution_3d"); }), HasSubstr("unknown"));
}

}  // namespace
}  // namespace st
