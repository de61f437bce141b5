// The CUDA plug-in's 8-bit AdamW and moving average on the simulated grid: the cpu's bits, and nothing written under skip or after a fault.
#include <gtest/gtest.h>

#include <array>

#include "ir/optimizer_state.h"
#include "simulated_operands.h"
#include "thrown_error.h"

namespace st::cuda {
namespace {

/// Slots and inputs of an op in memory; kernel and cpu have some each.
class UpdateCall {
 public:
  UpdateCall(Op op, const std::vector<Filled>& in, const std::vector<Filled>& slots, const Attrs& given) : attrs_(make_attrs(op, given)) {
    for (const Filled& x : in) in_.push_back(add(x));
    for (const Filled& x : slots) slots_.push_back(add(x));
  }
  Call call() {
    Call call;
    call.in = in_;
    call.reads = call.writes = slots_;
    call.attrs = &attrs_;
    return call;
  }
  std::vector<Filled> slots() {
    std::vector<Filled> all;
    for (size_t i = 0; i < slots_.size(); ++i) all.push_back({{slots_[i].dtype, slots_[i].shape}, memory_[in_.size() + i].taken()});
    return all;
  }

 private:
  Operand add(const Filled& x) {
    memory_.emplace_back(x.bytes);
    return {address_of(memory_.back().data()), x.tensor.dtype, x.tensor.shape};
  }

  const Attrs attrs_;
  std::vector<Bytes> memory_;
  std::vector<Operand> in_, slots_;
};

class MomentKernels : public FilledKernelTest {
 protected:
  MomentKernels() : FilledKernelTest(Order::late) {}

  /// The slots after an update by the kernels; `fault`: reported before it.
  std::vector<Filled> updated(Op op, const std::vector<Filled>& in, const std::vector<Filled>& slots, const Attrs& attrs,
                              uint64_t fault = IndexFaults::kNoFault) {
    UpdateCall update(op, in, slots, attrs);
    Call call = update.call();
    Bytes workspace(need({.device = "cuda"}, op, call));
    call.workspace = address_of(workspace.data());
    kernels_of(op)({&stream_, {{&fault}, 0}}, op, call);
    finish();
    workspace.taken();
    return update.slots();
  }
  std::vector<Filled> updated_by_cpu(Op op, const std::vector<Filled>& in, const std::vector<Filled>& slots, const Attrs& attrs) {
    UpdateCall update(op, in, slots, attrs);
    run_on_cpu(op, update.call());
    return update.slots();
  }
  static void expect_equal(const std::vector<Filled>& made, const std::vector<Filled>& wanted, const std::string& what) {
    for (size_t slot = 0; slot < made.size(); ++slot)
      EXPECT_EQ(differences(made[slot].bytes, wanted[slot].bytes, made[slot].tensor.dtype), 0) << what << ", slot " << slot;
  }
};

Filled flag(bool set) { return filled_with(DType::boolean, {}, std::vector<uint8_t>{set}); }
Filled rates(double number) { return filled_with(DType::f64, {2}, std::vector<double>{0.01, number}); }

std::vector<Filled> adamw_slots(int64_t elements, DType copy) {
  std::vector<Filled> slots = {moderate_filled(DType::f32, {elements}, 1)};
  for (const OptimizerState& state : optimizer_state(Op::adamw_8bit, {}, {.dtype = DType::f32, .shape = {elements}, .layout = {}}))
    slots.push_back({{state.type.dtype, state.type.shape}, std::vector<uint8_t>(static_cast<size_t>(state.type.bytes()))});
  if (copy != DType::f32) slots.push_back(moderate_filled(copy, {elements}, 2));
  return slots;
}
std::vector<Filled> adamw_inputs(DType gradient, int64_t elements, double number, bool skip) {
  return {moderate_filled(gradient, {elements}, static_cast<uint64_t>(number)), filled_with(DType::f32, {}, std::vector<float>{0.37F}),
          flag(skip), rates(number)};
}

// Gradients over 11 binades: their moments have codes of many decades.
TEST_F(MomentKernels, OfAdamwHaveTheBitsOfTheCpu) {
  if (cpu_->kernel_class() == "portable") GTEST_SKIP() << "the portable kernels have no fma";
  for (const Attrs& attrs : {Attrs{}, Attrs{{"weight_decay", 0.1}, {"clip_value", 0.3}, {"lr_scale", 0.5}, {"beta1", 0.0}}})
    for (const DType gradient : {DType::f32, DType::bf16, DType::f16})
      for (const DType copy : {DType::f32, DType::bf16, DType::f16})
        for (const int64_t elements : {0, 1, 255, 256, 257, 1500}) {
          std::vector<Filled> made = adamw_slots(elements, copy), wanted = made;
          for (const double number : {1, 2, 3, 1000}) {
            const std::vector<Filled> in = adamw_inputs(gradient, elements, number, false);
            made = updated(Op::adamw_8bit, in, made, attrs);
            wanted = updated_by_cpu(Op::adamw_8bit, in, wanted, attrs);
          }
          expect_equal(made, wanted, text("adamw_8bit ", gradient, " ", copy, " ", elements));
        }
}

TEST_F(MomentKernels, AverageLikeTheCpu) {
  for (const DType dtype : {DType::f32, DType::f64})
    for (const double decay : {0.0, 0.999})
      for (const double number : {1, 2})
        for (const int64_t elements : {0, 1, 3, 4, 5, 1030}) {
          const std::vector<Filled> in = {random_filled(dtype, {elements}, 1), flag(false), rates(number)},
                                    slots = {random_filled(dtype, {elements}, 2)};
          const Attrs attrs = {{"decay", decay}};
          expect_equal(updated(Op::average, in, slots, attrs), updated_by_cpu(Op::average, in, slots, attrs), text("average ", dtype));
        }
}

TEST_F(MomentKernels, ChangeNothingUnderSkipOrAfterAFault) {
  for (const bool skip : {true, false}) {
    const uint64_t fault = skip ? IndexFaults::kNoFault : 5;
    const std::vector<Filled> slots = adamw_slots(300, DType::bf16), average = {moderate_filled(DType::f32, {300}, 3)};
    expect_equal(updated(Op::adamw_8bit, adamw_inputs(DType::f32, 300, 2, skip), slots, {}, fault), slots, "adamw_8bit");
    const std::vector<Filled> in = {moderate_filled(DType::f32, {300}, 1), flag(skip), rates(2)};
    expect_equal(updated(Op::average, in, average, {{"decay", 0.9}}, fault), average, "average");
  }
}

TEST_F(MomentKernels, TypesThatThereAreNotAreRefused) {
  const std::vector<Filled> in = {moderate_filled(DType::bf16, {4}, 1), flag(false), rates(2)},
                            slots = {moderate_filled(DType::bf16, {4}, 2)};
  const Error error = error_of([&] { updated(Op::average, in, slots, {{"decay", 0.9}}); });
  EXPECT_EQ(error.code(), Code::unsupported);
  EXPECT_EQ(error.message(), "average: device cuda has no average of bf16; keep f32 master weights");
}

}  // namespace
}  // namespace st::cuda
