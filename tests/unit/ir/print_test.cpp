#include "ir/print.h"

#include <gtest/gtest.h>

#include "ir/build.h"
#include "ir/verify.h"

namespace st {
namespace {

Slot slot(const char* name, const Type& type, Role role, SlotId of = -1) {
  return {.name = name, .type = type, .role = role, .init = {}, .of = of};
}

// A layer, its gradient over micro-batches and its update: one example of everything that the text shows.
Program small() {
  Program program;
  program.sections.resize(3);
  program.sections[1].phase = Phase::backward;
  program.sections[2].phase = Phase::update;

  Builder forward(program, 0);
  const Value x = forward.input("x", DType::f32, {kBatch, 3});
  const Value target = forward.input("target", DType::f32, {kBatch, 5});
  forward.enter("block.0");
  forward.enter("mlp", false);
  const Value w = forward.parameter("weight", {5, 3}, {.kind = Init::normal, .scale = 0.02, .values = {}});
  const Value y = forward.matmul(x, w, false, true);
  forward.leave();
  forward.leave();
  const auto loss = forward.append(Op::mse, {y, target});
  program.outputs = {{"y", y}};
  program.loss_sum = loss[0];
  program.loss_count = loss[1];
  const SlotId weight = program.slot_named("block.0.mlp.weight");
  const SlotId stash = program.add_slot(slot("y.stash", {DType::f32, {kBatch, 5}, {}}, Role::stash));
  forward.store(y, stash);

  const SlotId gradient = program.add_slot(slot("weight.gradient", {DType::f32, {5, 3}, {}}, Role::gradient, weight));
  const SlotId target_slot = program.slot_named("target"), x_slot = program.slot_named("x");
  Builder backward(program, 1);
  const Value dy = backward(Op::mse_backward, {backward.load(stash), backward.load(target_slot), backward.fill({}, 1, DType::f64)});
  const Value dw = backward.matmul(dy, backward.load(x_slot), true);
  backward.store(dw, gradient, When::first);
  backward.accumulate(dw, gradient);

  const SlotId m = program.add_slot(slot("weight.m", {DType::f32, {5, 3}, {}}, Role::optimizer, weight));
  const SlotId v = program.add_slot(slot("weight.v", {DType::f32, {5, 3}, {}}, Role::optimizer, weight));
  const SlotId rates = program.add_slot(slot("rates", {DType::f64, {2}, {}}, Role::control));
  Builder update(program, 2);
  const Value g = update.load(gradient);
  const auto norm = update.append(Op::gradient_norm, {g});
  const auto factor = update.append(Op::step_factor, {norm[0], norm[1], update.fill({}, 4, DType::f64)}, {{"max_norm", 1}});
  update.update(Op::adamw, {g, factor[0], factor[2], update.load(rates)}, {weight, m, v}, {{"weight_decay", 0}});
  verify(program, "small");
  return program;
}

TEST(Print, ShowsAProgramAsItIs) {
  EXPECT_EQ(print(small()), R"(program
slots
  parameter
    block.0.mlp.weight : f32[5, 3]  normal(0.02)
  gradient
    weight.gradient : f32[5, 3]  of block.0.mlp.weight
  optimizer
    weight.m : f32[5, 3]  of block.0.mlp.weight
    weight.v : f32[5, 3]  of block.0.mlp.weight
  stash
    y.stash : f32[batch, 5]
  input
    x : f32[batch, 3]
    target : f32[batch, 5]
  control
    rates : f64[2]
section forward
  %0 = load(x) : f32[batch, 3]
  %1 = load(target) : f32[batch, 5]
  %2 = load(block.0.mlp.weight) : f32[5, 3]  @block.0.mlp
  %3 = matmul(%0, %2) {transpose_b} : f32[batch, 5]  @block.0.mlp
  %4 = mse(%3, %1) : f64[], f64[]
  %5 = store(%3 -> y.stash)
section backward
  %0 = load(y.stash) : f32[batch, 5]
  %1 = load(target) : f32[batch, 5]
  %2 = fill() {shape=[], value=1, dtype=f64} : f64[]
  %3 = mse_backward(%0, %1, %2) : f32[batch, 5]
  %4 = load(x) : f32[batch, 3]
  %5 = matmul(%3, %4) {transpose_a} : f32[5, 3]
  %6 = store(%5 -> weight.gradient)  when first
  %7 = accumulate(%5 -> weight.gradient)  when rest
section update
  %0 = load(weight.gradient) : f32[5, 3]
  %1 = gradient_norm(%0) : f64[], bool[]
  %2 = fill() {shape=[], value=4, dtype=f64} : f64[]
  %3 = step_factor(%1, %1.1, %2) {max_norm=1} : f32[], f64[], bool[]
  %4 = load(rates) : f64[2]
  %5 = adamw(%0, %3, %3.2, %4 -> block.0.mlp.weight, weight.m, weight.v) {weight_decay=0}
output y = %3
loss = %4 / %4.1
)");
}

TEST(Print, ShowsTheBatchTheMeshAndTheStage) {
  Program program;
  program.batch = 8;
  program.mesh = {.data = 2, .tensor = 1, .stage = 4};
  program.sections.push_back({.graph = {}, .phase = Phase::backward_weight, .stage = 3, .chunk = 1});
  EXPECT_EQ(print(program), "program  batch 8  mesh data 2, tensor 1, stage 4\nsection backward_weight  stage 3  chunk 1\n");
}

TEST(Print, ATypeShowsMultiplesOfTheBatchAndItsLayout) {
  EXPECT_EQ(text_of(Type{DType::bf16, {-64, 3}, Layout::sharded(MeshAxis::data, 0)}), "bf16[64*batch, 3]{data:sharded(0)}");
  EXPECT_EQ(text_of(Type{DType::boolean, {}, Layout::partial(MeshAxis::tensor)}), "bool[]{tensor:partial}");
  Layout layout = Layout::sharded(MeshAxis::tensor, 1);
  layout[MeshAxis::data] = {.kind = AxisLayout::Kind::flat, .where = 2, .grain = 4096};
  EXPECT_EQ(text_of(layout), "data:flat(4096, 2), tensor:sharded(1)");
}

}  // namespace
}  // namespace st
