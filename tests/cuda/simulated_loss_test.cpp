// The CUDA plug-in's losses on the simulated grid: as near to fp64 arithmetic as the cpu's, the same bits in every run and for an op and
// the ops it is made from, and the cpu's words for a target out of range.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "backend/cuda/index_faults.h"
#include "backend/reference/elements.h"
#include "grid_engine.h"
#include "simulated_operands.h"
#include "thrown_error.h"

namespace st::cuda {
namespace {

using Doubles = std::vector<double>;

Doubles values_of(const Operand& x) {
  Doubles all;
  for (int64_t i = 0; i < x.elements(); ++i) all.push_back(reference::get(x, i));
  return all;
}

/// Converts floats to f64; integers stay.
Filled widened(Filled x) {
  if (!is_floating(x.tensor.dtype)) return x;
  Bytes bytes(x.bytes);
  return filled_with(DType::f64, x.tensor.shape, values_of({address_of(bytes.data()), x.tensor.dtype, x.tensor.shape}));
}

double largest_of(const Doubles& x) {
  double largest = 0;
  for (const double value : x) largest = std::max(largest, std::abs(value));
  return largest;
}
double largest_difference(const Doubles& x, const Doubles& y) {
  double largest = 0;
  for (size_t i = 0; i < x.size(); ++i) largest = std::max(largest, std::abs(x[i] - y[i]));
  return largest;
}

/// A unit in the last place of 1: of f32 for sums of fp32 terms too.
double unit_of_type(DType dtype) { return dtype == DType::bf16 ? 0x1p-7 : dtype == DType::f16 ? 0x1p-10 : 0x1p-23; }

class LossKernels : public FilledKernelTest {
 protected:
  LossKernels() : FilledKernelTest(Order::late) {}

  /// Each output's largest error is 1.5 times that of the cpu and a unit in the last place of the largest number at most, and two runs have
  /// the same bits.
  void expect_as_exact_as_the_cpu(Op op, const std::vector<Filled>& in, const Attrs& attrs) {
    std::vector<Filled> wide;
    for (const Filled& x : in) wide.push_back(widened(x));
    OperandsInMemory made(op, in, attrs), again(op, in, attrs), by_cpu(op, in, attrs), exact(op, wide, attrs);
    run_on_device(op, made.call());
    simulated::set_seed(2);  // another order of blocks and threads
    run_on_device(op, again.call());
    simulated::set_seed(1);
    run_on_cpu(op, by_cpu.call());
    run_on_reference(op, exact.call());
    for (size_t i = 0; i < made.outputs(); ++i) {
      const Doubles wanted = values_of(exact.out(i));
      const double own = largest_difference(values_of(made.out(i)), wanted), of_cpu = largest_difference(values_of(by_cpu.out(i)), wanted);
      EXPECT_LE(own, 1.5 * of_cpu + unit_of_type(made.out(i).dtype) * largest_of(wanted))
          << text(name_of(op), " ", in[0].tensor.dtype, in[0].tensor.shape, ", output ", i, ", the cpu's error ", of_cpu);
      EXPECT_EQ(made.taken(i), again.taken(i)) << text(name_of(op), " ", in[0].tensor.shape, ", output ", i);
    }
  }

 private:
  void run_on_reference(Op op, Call call) {
    const auto reference = make_reference_backend();
    Bytes workspace(need(profile_of(*reference, 1), op, call));
    call.workers = &workers_;
    call.workspace = address_of(workspace.data());
    reference->kernels()[static_cast<size_t>(op)].run(call);
  }
};

constexpr DType kHere[] = {DType::f32, DType::bf16, DType::f16};

const Filled& seed() {
  static const Filled filled = filled_with(DType::f64, {}, Doubles{0.37});
  return filled;
}

/// A target for each row; every third one is ignored.
Filled some_targets(int64_t rows, int64_t classes, DType index = DType::i64) {
  std::mt19937_64 random(static_cast<uint64_t>(classes));
  std::vector<int64_t> all;
  for (int64_t r = 0; r < rows; ++r) all.push_back(r % 3 == 2 ? -100 : static_cast<int64_t>(random() % static_cast<uint64_t>(classes)));
  return indices_of_values(index, {rows}, all);
}

Filled positive(Filled x) {
  const auto width = static_cast<size_t>(bytes_of(x.tensor.dtype));
  for (size_t i = width - 1; i < x.bytes.size(); i += width) x.bytes[i] &= 0x7F;
  return x;
}

const Attrs kPlain = {}, kTerms = {{"label_smoothing", 0.2}, {"z_loss", 1e-2}};

/// Blocks of 32, 256 and 1024 threads, ragged and whole vectors.
const int64_t kClasses[] = {1, 2, 31, 37, 64, 1024, 1027, 2048, 16389};

TEST_F(LossKernels, OfClassesAreAsExactAsTheCpus) {
  for (const DType dtype : kHere)
    for (const int64_t classes : kClasses)
      for (const Attrs& attrs : {kPlain, kTerms}) {
        const int64_t rows = classes > 1000 ? 4 : 9;
        const Filled logits = moderate_filled(dtype, {rows, classes}, 3), weights = positive(moderate_filled(dtype, {rows}, 4));
        const Filled targets = some_targets(rows, classes, classes % 2 == 0 ? DType::i32 : DType::i64),
                     lse = moderate_filled(DType::f32, {rows}, 5);
        expect_as_exact_as_the_cpu(Op::cross_entropy, {logits, targets}, attrs);
        expect_as_exact_as_the_cpu(Op::cross_entropy, {logits, targets, weights}, attrs);
        expect_as_exact_as_the_cpu(Op::cross_entropy_backward, {logits, targets, lse, seed(), weights}, attrs);
      }
}

TEST_F(LossKernels, FusedWithTheirGradientHaveTheBitsOfTheTwo) {
  for (const int64_t classes : kClasses)
    for (const Attrs& attrs : {kPlain, kTerms})
      for (const DType result : kHere) {
        const int64_t rows = 5;
        const Filled logits = moderate_filled(DType::f32, {rows, classes}, 6), targets = some_targets(rows, classes);
        Attrs with_result = attrs;
        with_result.set("result", std::string(result == DType::f32 ? "same" : result == DType::bf16 ? "bf16" : "f16"));
        OperandsInMemory loss(Op::cross_entropy, {logits, targets}, attrs);
        OperandsInMemory back(Op::cross_entropy_backward, {logits, targets, moderate_filled(DType::f32, {rows}, 5), seed()}, attrs);
        OperandsInMemory fused(Op::fused_cross_entropy, {logits, targets, seed()}, with_result);
        run_on_device(Op::cross_entropy, loss.call());
        run_on_device(Op::cross_entropy_backward, back.call());
        run_on_device(Op::fused_cross_entropy, fused.call());
        EXPECT_EQ(fused.taken(0), loss.taken(0)) << classes;
        EXPECT_EQ(fused.taken(1), loss.taken(1)) << classes;
        if (result == DType::f32) {
          EXPECT_EQ(fused.taken(2), back.taken(0)) << classes;
          continue;
        }
        Bytes gradient(back.taken(0)), rounded(rows * classes * bytes_of(result));
        enqueue_cast(&stream_, result, rounded.data(), DType::f32, gradient.data(), rows * classes);
        finish();
        EXPECT_EQ(fused.taken(2), rounded.taken()) << classes << text(" ", result);
      }
}

TEST_F(LossKernels, WriteTheGradientOverTheLogits) {
  for (const int64_t classes : {37, 1024, 2051}) {
    const std::vector<Filled> in = {moderate_filled(DType::f32, {7, classes}, 6), some_targets(7, classes), seed()};
    OperandsInMemory apart(Op::fused_cross_entropy, in, {}), over(Op::fused_cross_entropy, in, {});
    run_on_device(Op::fused_cross_entropy, apart.call());
    Call call = over.call();
    std::vector<Operand> out(call.out.begin(), call.out.end());
    out[2].data = call.in[0].data;
    call.out = out;
    run_on_device(Op::fused_cross_entropy, call);
    EXPECT_EQ(values_of(out[2]), values_of(apart.out(2)));
    EXPECT_EQ(over.taken(0), apart.taken(0));
  }
}

Attrs part_of(const Attrs& attrs, int64_t first, int64_t classes, bool has_z_loss) {
  Attrs part = {{"first", first}, {"classes", classes}};
  if (attrs.has("label_smoothing")) part.set("label_smoothing", attrs.real("label_smoothing"));
  if (has_z_loss && attrs.has("z_loss")) part.set("z_loss", attrs.real("z_loss"));
  return part;
}

TEST_F(LossKernels, OfARanksClassesAreAsExactAsTheCpus) {
  for (const DType dtype : kHere)
    for (const int64_t classes : {1, 37, 1024, 2051})
      for (const Attrs& attrs : {kPlain, kTerms}) {
        const int64_t rows = 7, all = 3 * classes;
        const Filled logits = moderate_filled(dtype, {rows, classes}, 3), targets = some_targets(rows, all);
        expect_as_exact_as_the_cpu(Op::vocabulary_terms, {logits, targets}, part_of(attrs, classes, all, false));
        const Filled terms = positive(moderate_filled(DType::f64, {3, rows, 4}, 8)),
                     softmax = positive(moderate_filled(DType::f64, {rows, 2}, 9));
        expect_as_exact_as_the_cpu(Op::vocabulary_cross_entropy, {logits, targets, terms}, part_of(attrs, classes, all, true));
        expect_as_exact_as_the_cpu(Op::vocabulary_cross_entropy_backward, {logits, targets, softmax, seed()},
                                   part_of(attrs, classes, all, true));
      }
}

TEST_F(LossKernels, OfARanksClassesWriteTheirGradientOverTheLogits) {
  for (const int64_t classes : {37, 2051}) {
    const Attrs attrs = part_of(kTerms, classes, 3 * classes, true);
    const std::vector<Filled> in = {moderate_filled(DType::f32, {7, classes}, 6), some_targets(7, 3 * classes),
                                    positive(moderate_filled(DType::f64, {7, 2}, 9)), seed()};
    OperandsInMemory apart(Op::vocabulary_cross_entropy_backward, in, attrs), over(Op::vocabulary_cross_entropy_backward, in, attrs);
    run_on_device(Op::vocabulary_cross_entropy_backward, apart.call());
    Call call = over.call();
    Operand out = call.out[0];
    out.data = call.in[0].data;
    call.out = {&out, 1};
    run_on_device(Op::vocabulary_cross_entropy_backward, call);
    EXPECT_EQ(values_of(out), values_of(apart.out(0)));
  }
}

TEST_F(LossKernels, OfPairsAreAsExactAsTheCpus) {
  const std::pair<Op, Op> kLosses[] = {
      {Op::mse, Op::mse_backward}, {Op::huber, Op::huber_backward}, {Op::bce_with_logits, Op::bce_with_logits_backward}};
  for (const DType dtype : kHere)
    for (const int64_t elements : {0, 1, 3, 37, 4096, 9001})
      for (const auto& [loss, slope] : kLosses) {
        const Filled x = moderate_filled(dtype, {elements}, 3), target = positive(moderate_filled(dtype, {elements}, 4));
        const Filled weights = positive(moderate_filled(dtype, {elements}, 5));
        expect_as_exact_as_the_cpu(loss, {x, target}, {});
        expect_as_exact_as_the_cpu(loss, {x, target, weights}, {});
        expect_as_exact_as_the_cpu(slope, {x, target, seed()}, {});
        expect_as_exact_as_the_cpu(slope, {x, target, seed(), weights}, {});
      }
}

/// Rows of which the third and the fifth have a target outside 6 classes.
std::vector<OpCall> calls_with_a_bad_target() {
  const Filled logits = moderate_filled(DType::f32, {5, 6}, 1), bad = indices_of_values(DType::i32, {5}, {0, 5, 6, -100, -1});
  const Filled lse = moderate_filled(DType::f32, {5}, 2);
  return {{Op::cross_entropy, {logits, bad}},
          {Op::cross_entropy_backward, {logits, bad, lse, seed()}},
          {Op::fused_cross_entropy, {logits, bad, seed()}},
          {Op::vocabulary_terms, {logits, bad}},
          {Op::vocabulary_cross_entropy, {logits, bad, moderate_filled(DType::f64, {2, 5, 4}, 3)}},
          {Op::vocabulary_cross_entropy_backward, {logits, bad, moderate_filled(DType::f64, {5, 2}, 3), seed()}}};
}

TEST_F(LossKernels, ReportTheFirstTargetOutsideTheClassesInTheWordsOfTheCpu) {
  for (const OpCall& bad : calls_with_a_bad_target()) {
    const bool has_part = name_of(bad.op).starts_with("vocabulary");
    const Attrs attrs = has_part ? Attrs{{"first", int64_t{0}}, {"classes", int64_t{6}}} : Attrs{};
    OperandsInMemory operands(bad.op, bad.in, attrs), on_cpu(bad.op, bad.in, attrs);
    uint64_t words[2] = {IndexFaults::kNoFault, 0};
    Call call = operands.call();
    Bytes workspace(need({.device = "cuda"}, bad.op, call));
    call.workspace = address_of(workspace.data());
    kernels_of(bad.op)({&stream_, {{words}, 9}}, bad.op, call);
    finish();
    EXPECT_EQ(words[0], uint64_t{9} << IndexFaults::kElementBits | 2) << name_of(bad.op);
    EXPECT_EQ(words[1], 6U) << name_of(bad.op);
    const Error wanted = error_of([&] { run_on_cpu(bad.op, on_cpu.call()); });
    const Error error = error_of([&] { fail_at_index(bad.op, call, {6}, 2); });
    EXPECT_EQ(error.code(), Code::invalid_argument);
    EXPECT_EQ(error.message(), wanted.message());
  }
}

}  // namespace
}  // namespace st::cuda
