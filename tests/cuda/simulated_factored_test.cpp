// The CUDA plug-in's Adafactor and Muon on the simulated grid, whole and of pieces: as near to the update in fp64 as the cpu's, the same
// bits in two runs, and nothing written under skip or after a fault.
#include <gtest/gtest.h>

#include "backend/piece_parts.h"
#include "ir/optimizer_state.h"
#include "simulated_errors.h"
#include "thrown_error.h"

namespace st::cuda {
namespace {

/// A parameter, or the second of two pieces of one along `dimension`.
struct Updated {
  Shape shape;
  Ints segments = {};  // of the whole's dimension
  int64_t dimension = 0;

  Attrs attrs(Attrs of) const {
    if (segments.empty()) return of;
    of.set("dimension", dimension);
    of.set("segments", segments);
    of.set("rank", int64_t{1});
    of.set("ranks", int64_t{2});
    return of;
  }
  Shape whole() const {
    Shape all = shape;
    all[static_cast<int32_t>(dimension)] = 2 * all[static_cast<int32_t>(dimension)];
    return all;
  }
};

/// The slots and outputs after an op has run.
using Left = std::vector<Values>;

class FactoredKernels : public ErrorTest {
 protected:
  static constexpr uint64_t kFault = 5;

  /// Inputs are first_, the numbers of a step and `others`.
  static std::vector<Values> inputs(const Values& first, double number, bool skip, std::vector<Values> others = {}) {
    std::vector<Values> all = {
        first, {DType::f32, {}, {0.25}}, {DType::boolean, {}, {skip ? 1.0 : 0.0}}, {DType::f64, {2}, {1e-2, number}}};
    all.insert(all.end(), others.begin(), others.end());
    return all;
  }
  static Values normal(DType dtype, const Shape& shape, uint64_t seed) { return uniform_values(dtype, shape, -2, 2, seed); }
  static Values positive(const Shape& shape, uint64_t seed) { return uniform_values(DType::f32, shape, 0.05, 0.1, seed); }

  /// The slots of a whole parameter's update.
  static std::vector<Values> slots_of(Op op, const Shape& shape) {
    std::vector<Values> slots = {normal(DType::f32, shape, 7)};
    for (const OptimizerState& state : optimizer_state(op, make_attrs(op, {}), {.dtype = DType::f32, .shape = shape, .layout = {}}))
      slots.push_back(positive(state.type.shape, 8 + slots.size()));
    return slots;
  }

  Left left_by(By by, Op op, const std::vector<Values>& in, const std::vector<Values>& slots, const std::vector<Tensor>& ys,
               const Attrs& given, uint64_t fault = IndexFaults::kNoFault) {
    const Attrs attrs = make_attrs(op, given);
    const auto type_of = [&](DType dtype) { return by == By::reference && is_floating(dtype) ? DType::f64 : dtype; };
    std::vector<Bytes> memory;
    const auto add = [&](std::vector<Operand>& to, const Values& x) {
      memory.emplace_back(x.shape.elements() * bytes_of(type_of(x.dtype)));
      to.push_back({address_of(memory.back().data()), type_of(x.dtype), x.shape});
      for (size_t i = 0; i < x.at.size(); ++i) reference::set(to.back(), static_cast<int64_t>(i), x.at[i]);
    };
    std::vector<Operand> in_operands, left;
    for (const Values& x : in) add(in_operands, x);
    for (const Values& x : slots) add(left, x);
    for (const Tensor& y : ys) add(left, {y.dtype, y.shape, {}});
    const std::span<const Operand> all = left;
    Call call;
    call.in = in_operands;
    call.reads = call.writes = all.first(slots.size());
    call.out = all.subspan(slots.size());
    call.attrs = &attrs;
    run(by, op, call, fault);
    Left values;
    for (size_t i = 0; i < left.size(); ++i) {
      memory[in.size() + i].taken();
      values.push_back({i < slots.size() ? slots[i].dtype : ys[i - slots.size()].dtype, left[i].shape, {}});
      for (int64_t e = 0; e < left[i].shape.elements(); ++e) values.back().at.push_back(reference::get(left[i], e));
    }
    return values;
  }

  /// Each result's error is at most 1.5 times the cpu's and a unit of the largest.
  void expect_as_near_as_the_cpu(Op op, const std::vector<Values>& in, const std::vector<Values>& slots, const std::vector<Tensor>& ys,
                                 const Attrs& attrs) {
    const Left exact = left_by(By::reference, op, in, slots, ys, attrs), by_cpu = left_by(By::cpu, op, in, slots, ys, attrs);
    const Left made = left_by(By::device, op, in, slots, ys, attrs), again = left_by(By::device, op, in, slots, ys, attrs);
    for (size_t i = 0; i < exact.size(); ++i) {
      const std::string where = text(name_of(op), " ", in[0].dtype, in[0].shape, ", result ", i);
      // Sums in fp64 of numbers that are rounded to fp32.
      Values fp32 = exact[i], of_cpu = by_cpu[i], of_device = made[i];
      for (Values* each : {&fp32, &of_cpu, &of_device}) each->dtype = DType::f32;
      const double error = worst_error(of_cpu, fp32, false);
      EXPECT_LE(worst_error(of_device, fp32, false), 1.5 * error + 1) << where << ", the cpu's error is " << error;
      EXPECT_EQ(made[i].at, again[i].at) << where;
    }
  }

  /// Slots are left as they are, and outputs are 0, under skip and after a fault.
  void expect_unchanged(Op op, const Values& first, const std::vector<Values>& others, const std::vector<Values>& slots,
                        const std::vector<Tensor>& ys, const Attrs& attrs) {
    for (const bool skip : {true, false}) {
      const Left left = left_by(By::device, op, inputs(first, 3, skip, others), slots, ys, attrs, skip ? IndexFaults::kNoFault : kFault);
      for (size_t i = 0; i < slots.size(); ++i) EXPECT_EQ(left[i].at, slots[i].at) << name_of(op) << ", slot " << i;
      for (size_t i = slots.size(); i < left.size(); ++i)
        EXPECT_TRUE(std::ranges::all_of(left[i].at, [](double x) { return x == 0; })) << name_of(op);
    }
  }

 private:
  void run(By by, Op op, Call call, uint64_t fault) {
    if (by == By::cpu) return run_on_cpu(op, call);
    if (by == By::reference) return run_on_reference(op, call);
    Bytes workspace(need({.device = "cuda"}, op, call));
    call.workspace = address_of(workspace.data());
    kernels_of(op)({&stream_, {{&fault}, 0}}, op, call);
    finish();
    workspace.taken();
  }
};

// --- adafactor

const Shape kParameters[] = {{}, {1}, {37}, {9000}, {1, 1}, {3, 37}, {33, 257}, {100, 300}, {2, 3, 5}, {3, 0}, {0, 3}};
const Updated kPieces[] = {{{6, 8}, {8, 8}, 1}, {{6, 8}, {12}, 0}, {{35, 260}, {260, 260}, 1}, {{300, 40}, {200, 400}, 0}, {{10}, {20}, 0}};

TEST_F(FactoredKernels, AdafactorIsAsNearAsTheCpus) {
  for (const Shape& shape : kParameters)
    for (const DType gradient : kFloats)
      for (const double number : {1.0, 7.0}) {
        Attrs attrs;
        if (number == 7)
          attrs = {{"beta2_decay", -0.5}, {"epsilon", 1e-6}, {"clip_threshold", 1.5}, {"weight_decay", 0.1}, {"clip_value", 0.3}};
        expect_as_near_as_the_cpu(Op::adafactor, inputs(normal(gradient, shape, 3), number, false), slots_of(Op::adafactor, shape), {},
                                  attrs);
      }
}

/// Variances as a piece's ops have them.
std::vector<Values> variances(const Updated& piece) {
  if (piece.shape.rank() < 2) return {uniform_values(DType::f32, piece.shape, 0.05, 0.1, 4)};
  return {uniform_values(DType::f32, {piece.whole()[0]}, 0.05, 0.1, 4), uniform_values(DType::f32, {piece.whole()[1]}, 0.05, 0.1, 5)};
}
Shape terms(const Updated& piece) { return {piece.shape.rank() < 2 ? 1 : piece.whole()[0] + piece.whole()[1] + 1}; }

TEST_F(FactoredKernels, AdafactorOfPiecesIsAsNearAsTheCpus) {
  const Values squares = {DType::f64, {1}, {3}};
  for (const Updated& piece : kPieces)
    for (const DType dtype : kFloats) {
      const Values gradient = normal(dtype, piece.shape, 3), parameter = normal(DType::f32, piece.shape, 2);
      const Values sums = uniform_values(DType::f64, terms(piece), 0.5, 2, 6);
      const Attrs attrs = piece.attrs({{"weight_decay", 0.1}});
      expect_as_near_as_the_cpu(Op::adafactor_sums, inputs(gradient, 3, false, {parameter}), {}, {{DType::f64, terms(piece)}}, attrs);
      expect_as_near_as_the_cpu(Op::adafactor_size, inputs(gradient, 3, false, {sums}), variances(piece), {{DType::f64, {1}}}, attrs);
      std::vector<Values> slots = variances(piece);
      slots.insert(slots.begin(), parameter);
      expect_as_near_as_the_cpu(Op::adafactor_step, inputs(gradient, 3, false, {sums, squares}), slots, {}, attrs);
    }
}

TEST_F(FactoredKernels, AdafactorChangesNothingUnderSkipOrAfterAFault) {
  for (const Shape& shape : kParameters)
    expect_unchanged(Op::adafactor, normal(DType::f32, shape, 3), {}, slots_of(Op::adafactor, shape), {}, {});
  for (const Updated& piece : kPieces) {
    const Values gradient = normal(DType::f32, piece.shape, 3), sums = uniform_values(DType::f64, terms(piece), 0.5, 2, 6);
    expect_unchanged(Op::adafactor_size, gradient, {sums}, variances(piece), {{DType::f64, {1}}}, piece.attrs({}));
    std::vector<Values> slots = variances(piece);
    slots.insert(slots.begin(), normal(DType::f32, piece.shape, 2));
    expect_unchanged(Op::adafactor_step, gradient, {sums, {DType::f64, {1}, {3}}}, slots, {}, piece.attrs({}));
  }
}

// Squares of the largest gradients are beyond fp32.
TEST_F(FactoredKernels, AdafactorOfTheLargestGradientsIsFinite) {
  for (const Shape& shape : {Shape{40}, Shape{40, 300}}) {
    const Values gradient = {DType::f32, shape, std::vector<double>(static_cast<size_t>(shape.elements()), 0x1p126)};
    for (const Values& slot : left_by(By::device, Op::adafactor, inputs(gradient, 1, false), slots_of(Op::adafactor, shape), {}, {}))
      for (const double each : slot.at) ASSERT_TRUE(std::isfinite(each)) << text(shape);
  }
}

// --- muon

const Shape kMatrices[] = {{1, 1}, {3, 5}, {5, 3}, {33, 17}, {40, 129}, {70, 66}, {5, 1}, {0, 4}};
const Updated kMatrixPieces[] = {{{6, 8}, {8, 8}, 1}, {{6, 8}, {12}, 0}, {{35, 40}, {20, 60}, 1}, {{40, 33}, {20, 60}, 0}};

TEST_F(FactoredKernels, MuonIsAsNearAsTheCpus) {
  int number = 0;
  for (const Shape& shape : kMatrices)
    for (const DType gradient : kFloats)
      for (const bool nesterov : {true, false}) {
        if (kSanitized && ++number % 7 > 2) continue;
        Attrs attrs = {{"nesterov", nesterov}};
        if (!nesterov)
          attrs = {{"nesterov", false}, {"ns_steps", int64_t{2}}, {"adjust_lr", std::string("match_rms_adamw")}, {"clip_value", 0.3}};
        expect_as_near_as_the_cpu(Op::muon, inputs(normal(gradient, shape, 3), 3, false), slots_of(Op::muon, shape), {}, attrs);
      }
}

TEST_F(FactoredKernels, MuonsDirectionHasTheBitsOfTheCpu) {
  if (cpu_->kernel_class() == "portable") GTEST_SKIP() << "the portable kernels have no fma";
  for (const Updated& piece : kMatrixPieces)
    for (const DType dtype : kFloats) {
      const auto left = [&](By by) {
        return left_by(by, Op::muon_direction, inputs(normal(dtype, piece.shape, 3), 3, false), {normal(DType::f32, piece.shape, 4)},
                       {{DType::f32, piece.shape}}, piece.attrs({}));
      };
      const Left made = left(By::device), wanted = left(By::cpu);
      for (size_t i = 0; i < made.size(); ++i) EXPECT_EQ(made[i].at, wanted[i].at) << text(dtype, piece.shape, ", result ", i);
    }
}

/// The directions of all ranks.
Values directions(const Updated& piece) {
  Shape shape = piece.shape;
  shape[0] = 2 * shape[0];
  return uniform_values(DType::f32, shape, -1, 1, 9);
}

TEST_F(FactoredKernels, MuonsStepOfPiecesIsAsNearAsTheCpus) {
  for (const Updated& piece : kMatrixPieces)
    expect_as_near_as_the_cpu(Op::muon_step, inputs(directions(piece), 3, false), {normal(DType::f32, piece.shape, 2)}, {},
                              piece.attrs({}));
}

TEST_F(FactoredKernels, MuonChangesNothingUnderSkipOrAfterAFault) {
  for (const Shape& shape : kMatrices) expect_unchanged(Op::muon, normal(DType::f32, shape, 3), {}, slots_of(Op::muon, shape), {}, {});
  for (const Updated& piece : kMatrixPieces) {
    const std::vector<Values> slots = {normal(DType::f32, piece.shape, 2)};
    expect_unchanged(Op::muon_direction, normal(DType::f32, piece.shape, 3), {}, slots, {{DType::f32, piece.shape}}, piece.attrs({}));
    expect_unchanged(Op::muon_step, directions(piece), {}, slots, {}, piece.attrs({}));
  }
}

TEST_F(FactoredKernels, TypesThatThereAreNotAreRefused) {
  const Attrs attrs = make_attrs(Op::adafactor, {});
  const Operand gradient = {{}, DType::f64, Shape({4})}, parameter = {{}, DType::f64, Shape({4})};
  Call call;
  call.in = {&gradient, 1};
  call.writes = {&parameter, 1};
  call.attrs = &attrs;
  const Error error = error_of([&] { enqueue_adafactor(&stream_, Op::adafactor, call); });
  EXPECT_EQ(error.code(), Code::unsupported);
  EXPECT_EQ(error.message(), "adafactor: device cuda cannot update f64 parameters from f64 gradients; keep f32 master weights");
}

}  // namespace
}  // namespace st::cuda
