#include "ir/attrs.h"

#include "ir/op.h"
#include "refusal.h"

namespace st {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(Attrs, SetReplacesAndKeepsThePlace) {
  Attrs attrs{{"a", 1}, {"b", 2.5}};
  attrs.set("a", int64_t{7});
  EXPECT_EQ(attrs.integer("a"), 7);
  EXPECT_EQ(attrs.all()[0].first, "a");
  EXPECT_EQ(attrs.all().size(), 2U);
  EXPECT_FALSE(attrs.has("c"));
}

TEST(Attrs, AnIntegerReadsAsReal) { EXPECT_EQ(Attrs({{"scale", 3}}).real("scale"), 3.0); }

TEST(Attrs, ReadingWhatIsNotThereIsOurMistake) {
  const Attrs attrs{{"a", true}};
  EXPECT_THAT(refusal(Code::internal, [&] { attrs.integer("b"); }), HasSubstr("\"b\" is not set"));
  EXPECT_THAT(refusal(Code::internal, [&] { attrs.integer("a"); }), HasSubstr("another type"));
}

TEST(Attrs, TextShowsEveryType) {
  EXPECT_EQ(text_of(AttrValue(true)), "true");
  EXPECT_EQ(text_of(AttrValue(int64_t{-3})), "-3");
  EXPECT_EQ(text_of(AttrValue(0.5)), "0.5");
  EXPECT_EQ(text_of(AttrValue(Ints{1, 2})), "[1, 2]");
  EXPECT_EQ(text_of(AttrValue(std::string("erf"))), "erf");
}

TEST(MakeAttrs, FillsDefaultsInTheRowsOrderWhateverOrderIsGiven) {
  const Attrs attrs = make_attrs(Op::adamw, {{"weight_decay", 0.1}, {"beta1", 0.8}});
  EXPECT_EQ(attrs.real("beta1"), 0.8);
  EXPECT_EQ(attrs.real("beta2"), 0.999);
  EXPECT_EQ(attrs.real("epsilon"), 1e-8);
  EXPECT_EQ(attrs.real("weight_decay"), 0.1);
  EXPECT_EQ(attrs, make_attrs(Op::adamw, {{"beta1", 0.8}, {"weight_decay", 0.1}}));
}

TEST(MakeAttrs, MadeAttributesAreUnchangedByMakingThemAgain) {
  const Attrs attrs = make_attrs(Op::affine, {{"scale", 2}});
  EXPECT_TRUE(std::holds_alternative<double>(*attrs.find("scale")));
  EXPECT_EQ(make_attrs(Op::affine, attrs), attrs);
}

TEST(MakeAttrs, WhatItMakesIsWholeAndNothingElseIs) {
  for (const auto& given : {Attrs{{"shape", Ints{2, 3}}, {"dtype", "bf16"}}, Attrs{{"shape", Ints{}}}}) {
    EXPECT_FALSE(are_whole(Op::fill, given)) << "in the row's order, and the value too";
    EXPECT_TRUE(are_whole(Op::fill, make_attrs(Op::fill, given)));
  }
  EXPECT_TRUE(are_whole(Op::exp, {}));
  EXPECT_TRUE(are_whole(Op::gelu, {{"approximate", "erf"}}));
  EXPECT_FALSE(are_whole(Op::gelu, {{"approximate", "sort of"}}));
  EXPECT_FALSE(are_whole(Op::fill, {{"shape", Ints{}}, {"value", 0.0}, {"dtype", "f31"}}));
  EXPECT_FALSE(are_whole(Op::affine, {{"scale", 2}, {"shift", 0.0}}));
  EXPECT_FALSE(are_whole(Op::affine, {{"shift", 0.0}, {"scale", 2.0}}));
}

TEST(MakeAttrs, AnUnknownNameNamesTheNearest) {
  EXPECT_THAT(refusal([] {
                make_attrs(Op::matmul, {{"transpos_a", true}});
              }),
              AllOf(HasSubstr("matmul"), HasSubstr("did you mean \"transpose_a\"?")));
  EXPECT_THAT(refusal([] { make_attrs(Op::affine, {{"completely_else", 1}}); }), HasSubstr("it has scale, shift"));
  EXPECT_THAT(refusal([] { make_attrs(Op::exp, {{"axis", 1}}); }), HasSubstr("it has none"));
}

TEST(MakeAttrs, AWrongTypeNamesBothTypes) {
  EXPECT_THAT(refusal([] { make_attrs(Op::softmax, {{"axis", 1.5}}); }), HasSubstr("axis must be int, got real 1.5"));
  EXPECT_THAT(refusal([] { make_attrs(Op::matmul, {{"transpose_a", 1}}); }), HasSubstr("transpose_a must be bool, got int 1"));
}

TEST(MakeAttrs, AMissingRequiredOneIsNamed) {
  EXPECT_THAT(refusal([] { make_attrs(Op::fill, {}); }), HasSubstr("fill: attribute shape (ints) must be given"));
}

TEST(MakeAttrs, AWordMustBeOneOfItsChoices) {
  EXPECT_THAT(refusal([] { make_attrs(Op::gelu, {{"approximate", "none"}}); }), HasSubstr("must be one of tanh, erf, got \"none\""));
  EXPECT_THAT(refusal([] { make_attrs(Op::compare, {{"test", "=="}}); }), HasSubstr("must be one of equal, not_equal, less"));
  EXPECT_THAT(refusal([] { make_attrs(Op::cast, {{"dtype", "float"}}); }), AllOf(HasSubstr("cast: "), HasSubstr("\"float\" is unknown")));
}

}  // namespace
}  // namespace st
