#include "train/predictor.h"

#include <cstring>

#include "ir/build.h"
#include "refusal.h"
#include "training.h"

namespace st {
namespace {

template <class Call>
Code code_of(const Call& call) {
  return error_of(call).code();
}

/// sum = x + w, so that results show the weight.
std::shared_ptr<Model> adding_model(DType dtype) {
  Program program;
  program.sections.emplace_back();
  Builder b(program, 0);
  const Value x = b.input("x", dtype, {kBatch, 3}), unused = b.input("unused", DType::f32, {kBatch, 2});
  const Value w = b.parameter("w", {3}, {.kind = Init::ones, .values = {}}, dtype);
  program.outputs.push_back({"sum", b.add(x, w)});
  program.outputs.push_back({"weight", w});
  program.outputs.push_back({"other", unused});
  return std::make_shared<Model>(Training{}.context(), program, 1);
}

HostView view_of(std::string_view name, std::vector<float>& values, const Shape& shape) {
  return {name, DType::f32, shape, row_major(shape), values.data()};
}

/// The predictor's result for these rows.
std::vector<float> sum_of(Predictor& predictor, std::vector<float> x) {
  std::vector<float> y(x.size());
  const Shape shape{std::ssize(x) / 3, 3};
  const HostView in = view_of("x", x, shape), out = view_of("sum", y, shape);
  predictor.run({&in, 1}, {&out, 1});
  return y;
}

TEST(Predictor, AnUpdateLeftHalfDoneMakesARefreshBusyAndKeepsTheSnapshot) {
  const auto model = adding_model(DType::f32);
  Predictor predictor(model);
  std::vector<float> ten(3, 10);
  const HostView w = view_of("", ten, {3});
  model->gate().begin_update();
  EXPECT_EQ(code_of([&] { predictor.refresh(); }), Code::busy) << "from within the update it would wait for itself";
  model->gate().pause_update();
  EXPECT_EQ(code_of([&] { predictor.refresh(); }), Code::busy);
  EXPECT_EQ(code_of([&] { Predictor another(model); }), Code::busy);
  EXPECT_EQ(code_of([&] { model->set(model->parameters()[0], w); }), Code::busy) << "writing would wait for ever";
  EXPECT_EQ(code_of([&] { model->get(model->parameters()[0], w); }), Code::busy);
  EXPECT_EQ(sum_of(predictor, {1, 2, 3}), (std::vector<float>{2, 3, 4}));
  model->gate().resume_update();
  model->gate().end_update();
  model->set(model->parameters()[0], w);
  EXPECT_EQ(sum_of(predictor, {1, 2, 3}), (std::vector<float>{2, 3, 4})) << "its own snapshot";
  predictor.refresh();
  EXPECT_EQ(sum_of(predictor, {1, 2, 3}), (std::vector<float>{11, 12, 13}));
}

TEST(Predictor, AnOutputThatNeedsNoInputNeedsNone) {
  const auto model = adding_model(DType::f32);
  Predictor predictor(model);
  std::vector<float> w(3), x = {1, 2, 3, 4}, other(4);
  const HostView weight = view_of("weight", w, {3});
  predictor.run({}, {&weight, 1});
  EXPECT_EQ(w, (std::vector<float>{1, 1, 1}));
  const HostView in = view_of("unused", x, {2, 2}), out = view_of("other", other, {2, 2});
  predictor.run({&in, 1}, {&out, 1});
  EXPECT_EQ(other, x) << "an output may be an input";
}

TEST(Predictor, OutputsThatShareMemoryAreRefused) {
  Predictor predictor(adding_model(DType::f32));
  std::vector<float> x = {1, 2, 3}, y(5);
  const HostView in = view_of("x", x, {1, 3});
  HostView outputs[] = {view_of("sum", y, {1, 3}), view_of("weight", y, {3})};
  outputs[1].data = y.data() + 2;
  EXPECT_EQ(code_of([&] { predictor.run({&in, 1}, outputs); }), Code::invalid_argument);
  EXPECT_EQ(y, std::vector<float>(5, 0));
  std::vector<float> table(6);
  outputs[0] = {"sum", DType::f32, {1, 3}, {6, 2}, table.data()};
  outputs[1] = {"weight", DType::f32, {3}, {2}, table.data() + 1};
  predictor.run({&in, 1}, outputs);
  EXPECT_EQ(table, (std::vector<float>{2, 1, 3, 1, 4, 1})) << "two columns of one table";
}

TEST(Predictor, GivesBackWhatItOnlyKeeps) {
  const auto model = adding_model(DType::f32);
  Predictor predictor(model);
  const int64_t alone = model->context().backend().allocated_bytes();
  const std::vector<float> rows(300, 1);
  sum_of(predictor, rows);
  predictor.refresh();
  sum_of(predictor, rows);
  EXPECT_GT(model->context().backend().allocated_bytes(), alone);
  predictor.trim();
  EXPECT_EQ(model->context().backend().allocated_bytes(), alone);
  EXPECT_EQ(sum_of(predictor, rows), std::vector<float>(300, 2));
}

TEST(Predictor, AFullMemoryIsRefusedBeforeItIsTouched) {
  const auto small = context_within(16384);
  Program program;
  program.sections.emplace_back();
  Builder b(program, 0);
  program.outputs.push_back({"w", b.parameter("w", {3000}, {.kind = Init::ones, .values = {}})});
  const auto model = std::make_shared<Model>(small, program, 1);
  const int64_t before = small->backend().allocated_bytes();
  EXPECT_EQ(code_of([&] { Predictor predictor(model); }), Code::out_of_memory);
  EXPECT_EQ(code_of([&] { model->clone(); }), Code::out_of_memory);
  EXPECT_EQ(small->backend().allocated_bytes(), before);
}

TEST(Predictor, ParametersOfOtherTypesAreCopiedBitByBitAndBlendedAsF32) {
  for (const DType dtype : {DType::f64, DType::bf16, DType::f16}) {
    const auto a = adding_model(dtype), b = a->clone();
    std::vector<float> values = {3, 5, 9}, back(3);
    b->set(b->parameters()[0], view_of("", values, {3}));
    a->blend(*b, 0.5);
    a->get(a->parameters()[0], view_of("", back, {3}));
    EXPECT_EQ(back, (std::vector<float>{2, 3, 5})) << name_of(dtype);
    a->blend(*b, 1);
    EXPECT_EQ(a->digest(), b->digest()) << name_of(dtype);
  }
}

}  // namespace
}  // namespace st
