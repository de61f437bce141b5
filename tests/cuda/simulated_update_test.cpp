// The CUDA plug-in's elementwise optimizers on the simulated grid: parameter, state and 16-bit copy have the cpu's bits after several
// steps.
#include <gtest/gtest.h>

#include <array>
#include <bit>

#include "backend/cuda/update_numbers.h"
#include "simulated_kernels.h"
#include "thrown_error.h"

namespace st::cuda {
namespace {

struct Optimizer {
  Op op;
  Attrs attrs;
  int states;
};
const std::vector<Optimizer>& optimizers() {
  static const std::vector<Optimizer> all = {
      {Op::adamw, {}, 2},
      {Op::adamw, {{"decoupled", false}, {"weight_decay", 0.03}, {"clip_value", 0.7}}, 2},
      {Op::adamw, {{"epsilon", 1e-30}, {"lr_scale", 0.1}, {"beta1", 0.0}}, 2},
      {Op::sgd, {{"weight_decay", 0.01}}, 0},
      {Op::sgd, {{"momentum", 0.9}, {"dampening", 0.1}, {"clip_value", 0.7}}, 1},
      {Op::sgd, {{"momentum", 0.9}, {"nesterov", true}, {"weight_decay", 0.01}}, 1},
      {Op::lion, {{"weight_decay", 0.1}}, 1},
      {Op::rmsprop, {}, 1},
      {Op::rmsprop, {{"momentum", 0.9}}, 2},
      {Op::rmsprop, {{"centered", true}, {"weight_decay", 0.01}}, 2},
      {Op::rmsprop, {{"momentum", 0.9}, {"centered", true}}, 3},
      {Op::adagrad, {{"rate_decay", 0.01}, {"initial_accumulator_value", 0.1}, {"weight_decay", 0.01}}, 1}};
  return all;
}

/// Parameter, state and copy, of which the kernel and the cpu each have their own.
class Slots {
 public:
  Slots(int states, DType copy, int64_t elements) {
    add(DType::f32, elements);
    for (int s = 0; s < states; ++s) {  // not zeros, which would hide what the first update does with them
      std::vector<uint8_t> bytes;
      for (int64_t i = 0; i < elements; ++i) append(bytes, DType::f32, std::bit_cast<uint32_t>(1 / static_cast<float>(i + s + 3)));
      memory_.emplace_back(bytes);
      operands_.push_back({address_of(memory_.back().data()), DType::f32, Shape({elements})});
    }
    if (copy != DType::f32) add(copy, elements);
  }
  std::span<const Operand> operands() const { return operands_; }
  size_t size() const { return operands_.size(); }
  std::vector<uint8_t> taken(size_t slot) { return memory_[slot].taken(); }

 private:
  void add(DType dtype, int64_t elements) {
    memory_.emplace_back(numbers(dtype, elements, 17));
    operands_.push_back({address_of(memory_.back().data()), dtype, Shape({elements})});
  }

  std::vector<Bytes> memory_;
  std::vector<Operand> operands_;
};

/// The inputs of an update: gradient, factor, skip and rates.
class Inputs {
 public:
  Inputs(DType gradient, int64_t elements, uint64_t seed, double rate, double number, bool skip)
      : gradient_(numbers(gradient, elements, seed)), skip_(skip), rates_{rate, number} {
    operands_ = {{{address_of(gradient_.data()), gradient, Shape({elements})},
                  {address_of(&factor_), DType::f32, Shape{}},
                  {address_of(&skip_), DType::boolean, Shape{}},
                  {address_of(rates_), DType::f64, Shape({2})}}};
  }
  std::span<const Operand> operands() const { return operands_; }

 private:
  Bytes gradient_;
  float factor_ = 0.37F;
  uint8_t skip_;
  double rates_[2];
  std::array<Operand, 4> operands_;
};

class UpdateKernels : public KernelTest {
 protected:
  UpdateKernels() : KernelTest(Order::late) {}

  void step(const Optimizer& optimizer, DType gradient, int64_t elements, double number, bool skip, Slots& made, Slots& wanted) {
    const Attrs attrs = make_attrs(optimizer.op, optimizer.attrs);
    const Inputs inputs(gradient, elements, static_cast<uint64_t>(number), 0.01, number, skip);
    Bytes workspace(sizeof(UpdateNumbers));
    Call call;
    call.in = inputs.operands();
    call.attrs = &attrs;
    call.reads = call.writes = made.operands();
    call.workspace = address_of(workspace.data());
    enqueue_update(&stream_, optimizer.op, call);
    finish();
    workspace.taken();
    call.reads = call.writes = wanted.operands();
    run_on_cpu(optimizer.op, call);
  }

  static void expect_equal(Slots& made, Slots& wanted, const std::string& what) {
    for (size_t slot = 0; slot < made.size(); ++slot)
      EXPECT_EQ(differences(made.taken(slot), wanted.taken(slot), made.operands()[slot].dtype), 0) << what << ", slot " << slot;
  }
};

TEST_F(UpdateKernels, HaveTheBitsOfTheCpu) {
  if (cpu_->kernel_class() == "portable") GTEST_SKIP() << "the portable kernels have no fma";
  for (const Optimizer& optimizer : optimizers())
    for (const DType gradient : kFloats)
      for (const DType copy : kFloats)
        for (const int64_t elements : {0, 1, 3, 4, 5, 2050}) {
          Slots made(optimizer.states, copy, elements), wanted(optimizer.states, copy, elements);
          for (const double number : {1, 2, 1000}) step(optimizer, gradient, elements, number, false, made, wanted);
          expect_equal(made, wanted, text(name_of(optimizer.op), " ", gradient, " ", copy, " ", elements));
        }
}

TEST_F(UpdateKernels, ChangeNothingUnderSkip) {
  for (const Optimizer& optimizer : optimizers()) {
    Slots made(optimizer.states, DType::bf16, 37), before(optimizer.states, DType::bf16, 37);
    step(optimizer, DType::f32, 37, 3, true, made, before);
    for (size_t slot = 0; slot < made.size(); ++slot) EXPECT_TRUE(made.taken(slot) == before.taken(slot)) << name_of(optimizer.op);
  }
}

TEST_F(UpdateKernels, TypesThatThereAreNotAreRefused) {
  const Attrs attrs = make_attrs(Op::sgd, {});
  const Operand gradient = {{}, DType::f64, Shape({4})}, parameter = {{}, DType::f64, Shape({4})};
  Call call;
  call.in = {&gradient, 1};
  call.writes = {&parameter, 1};
  call.attrs = &attrs;
  const Error error = error_of([&] { enqueue_update(&stream_, Op::sgd, call); });
  EXPECT_EQ(error.code(), Code::unsupported);
  EXPECT_EQ(error.message(), "sgd: device cuda cannot update f64 parameters from f64 gradients; keep f32 master weights");
}

}  // namespace
}  // namespace st::cuda
