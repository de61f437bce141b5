// cross_entropy over ranks that each have some columns of the logits: against cross_entropy of the whole logits.
#include <limits>
#include <optional>

#include "base/error.h"
#include "comparison.h"
#include "conformance.h"
#include "ir/verify.h"
#include "passes/autodiff.h"

namespace st::conformance {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Operands of cross_entropy, and the number of ranks that share its classes.
struct Loss {
  Tensor logits, targets;
  std::optional<Tensor> weights = {};
  double smoothing = 0, z_loss = 0;

  int64_t classes() const { return logits.shape().last(); }
  Attrs terms() const { return {{"ignore_index", int64_t{-100}}, {"label_smoothing", smoothing}}; }
  Attrs attrs() const { return {{"ignore_index", int64_t{-100}}, {"label_smoothing", smoothing}, {"z_loss", z_loss}}; }
  std::vector<Tensor> with_weights(std::vector<Tensor> in) const {
    if (weights) in.push_back(*weights);
    return in;
  }
};

Tensor columns_of(const Tensor& x, int64_t first, int64_t columns) {
  Shape shape = x.shape();
  shape[shape.rank() - 1] = columns;
  Tensor part(x.dtype(), shape);
  for (int64_t i = 0; i < part.elements(); ++i) part.set(i, x.at(i / columns * x.shape().last() + first + i % columns));
  return part;
}

void put_columns(const Tensor& part, Tensor& x, int64_t first) {
  const int64_t columns = part.shape().last();
  for (int64_t i = 0; i < part.elements(); ++i) x.set(i / columns * x.shape().last() + first + i % columns, part.at(i));
}

/// As the gather over ranks: parts [1, ...] one after the other.
Tensor joined(const std::vector<Tensor>& parts) {
  Shape shape = parts[0].shape();
  shape[0] = std::ssize(parts);
  Tensor all(parts[0].dtype(), shape);
  all.bytes().clear();
  for (const Tensor& part : parts) all.bytes().insert(all.bytes().end(), part.bytes().begin(), part.bytes().end());
  return all;
}

Attrs on_rank(Attrs attrs, int64_t first, int64_t classes) {
  attrs.set("first", first);
  attrs.set("classes", classes);
  return attrs;
}

Tensor terms_of_ranks(Backend& backend, const Loss& loss, const std::vector<int64_t>& shards) {
  std::vector<Tensor> terms;
  int64_t first = 0;
  for (const int64_t columns : shards) {
    const Attrs attrs = on_rank(loss.terms(), first, loss.classes());
    const OpCase c = {
        .op = Op::vocabulary_terms, .name = "", .in = {columns_of(loss.logits, first, columns), loss.targets}, .attrs = attrs};
    terms.push_back(run(backend, c).out[0]);
    first += columns;
  }
  return joined(terms);
}

/// sum, count, lse and dlogits.
using Results = std::vector<Tensor>;

const Tensor kSeed = Tensor::scalar(0.37, DType::f64);

Results over_ranks(Backend& backend, const Loss& loss, const std::vector<int64_t>& shards) {
  const Tensor terms = terms_of_ranks(backend, loss, shards);
  Results all;
  Tensor dlogits(loss.logits.dtype(), loss.logits.shape());
  int64_t first = 0;
  for (const int64_t columns : shards) {
    const Attrs attrs = on_rank(loss.attrs(), first, loss.classes());
    const Tensor own = columns_of(loss.logits, first, columns);
    const std::vector<Tensor> in = loss.with_weights({own, loss.targets, terms});
    const Results forward = run(backend, {.op = Op::vocabulary_cross_entropy, .name = "", .in = in, .attrs = attrs}).out;
    if (first == 0) all.assign(forward.begin(), forward.begin() + 3);
    EXPECT_EQ(Results(forward.begin(), forward.begin() + 3), all) << "the rank with columns from " << first << " has another loss";
    const std::vector<Tensor> back = loss.with_weights({own, loss.targets, forward[3], kSeed});
    const OpCase backward = {.op = Op::vocabulary_cross_entropy_backward, .name = "", .in = back, .attrs = attrs};
    put_columns(run(backend, backward).out[0], dlogits, first);
    first += columns;
  }
  all.push_back(dlogits);
  return all;
}

Results of_the_whole(Backend& backend, const Loss& loss) {
  Results all =
      run(backend, {.op = Op::cross_entropy, .name = "", .in = loss.with_weights({loss.logits, loss.targets}), .attrs = loss.attrs()}).out;
  const OpCase backward = {.op = Op::cross_entropy_backward,
                           .name = "",
                           .in = loss.with_weights({loss.logits, loss.targets, all[2], kSeed}),
                           .attrs = loss.attrs()};
  all.push_back(run(backend, backward).out[0]);
  return all;
}

/// Three ways to have targets, weights and terms; targets at both ends of the classes, some ignored.
std::vector<Loss> losses(DType dtype, int64_t classes = 37) {
  std::vector<OpCase> unused;
  Suite s(Op::vocabulary_cross_entropy, {}, unused);
  std::vector<Loss> all;
  for (const DType index : {DType::i32, DType::i64}) {
    Tensor targets = s.integers({4, 7}, classes, index);
    for (const int64_t i : {0, 3, 13}) targets.set(i, -100);
    targets.set(1, 0);
    targets.set(2, static_cast<double>(classes) - 1);
    const Tensor logits = s.normal({4, 7, classes}, 3).to(dtype), weights = s.uniform({4, 7}, 0.1, 2).to(dtype);
    all.push_back({logits, targets});
    all.push_back({logits, targets, weights});
    all.push_back({logits, targets, weights, 0.2, 1e-2});
  }
  return all;
}

TEST(VocabularyCrossEntropy, OfOneRankHasTheBitsOfCrossEntropy) {
  for (const BackendUnderTest& candidate : backends_and_reference()) {
    const auto backend = candidate.make();
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16})
      for (const int64_t classes : {int64_t{1}, int64_t{37}, int64_t{1031}})
        for (const Loss& loss : losses(dtype, classes))
          EXPECT_EQ(over_ranks(*backend, loss, {classes}), of_the_whole(*backend, loss)) << candidate.name << text(" in ", dtype);
  }
}

// The sums over columns have another order. In fp64 that is all; else each rank also rounds its own gradient once, as the whole does.
TEST(VocabularyCrossEntropy, OfUnevenShardsIsThatOfTheWhole) {
  const std::vector<std::vector<int64_t>> cuts = {{19, 18}, {36, 1}, {1, 13, 23}, {8, 8, 8, 8, 5}};
  for (const BackendUnderTest& candidate : backends_and_reference()) {
    const auto backend = candidate.make();
    for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16})
      for (const Loss& loss : losses(dtype)) {
        const Results want = of_the_whole(*backend, loss);
        for (const std::vector<int64_t>& shards : cuts) {
          SCOPED_TRACE(text(candidate.name, " in ", dtype, ", ", shards.size(), " ranks"));
          const Results got = over_ranks(*backend, loss, shards);
          EXPECT_EQ(got[1], want[1]) << "count";
          for (const size_t i : {0, 2, 3}) EXPECT_TRUE(near(got[i], want[i], {.each = 8, .largest = 8}, dtype)) << "result " << i;
        }
      }
  }
}

TEST(VocabularyCrossEntropy, ARankWhoseClassesAreAllMaskedAddsNothing) {
  Loss loss = losses(DType::f32)[1];
  for (int64_t i = 0; i < loss.logits.elements(); ++i)
    if (i % 37 < 10) loss.logits.set(i, -kInfinity);
  for (int64_t i = 0; i < loss.targets.elements(); ++i)
    if (loss.targets.at(i) >= 0 && loss.targets.at(i) < 10) loss.targets.set(i, 20);
  for (const BackendUnderTest& candidate : backends_and_reference()) {
    const auto backend = candidate.make();
    const Results want = of_the_whole(*backend, loss), got = over_ranks(*backend, loss, {10, 27});
    ASSERT_LT(want[0].at(0), kInfinity);
    for (const size_t i : {0, 2, 3})
      EXPECT_TRUE(near(got[i], want[i], {.each = 8, .largest = 8}, DType::f32)) << candidate.name << ", result " << i;
  }
}

// Where the whole loss is not a number, so is that of the ranks: a found-inf check must see it.
TEST(VocabularyCrossEntropy, IsNotANumberWhereTheWholeIsNone) {
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(), kInfinity})
    for (const int64_t column : {2, 30}) {
      Loss loss = losses(DType::f32)[0];
      loss.logits.set(5 * 37 + column, bad);
      for (const BackendUnderTest& candidate : backends_and_reference()) {
        const auto backend = candidate.make();
        const Results want = of_the_whole(*backend, loss), got = over_ranks(*backend, loss, {10, 27});
        ASSERT_TRUE(std::isnan(want[0].at(0))) << candidate.name;
        for (size_t i = 0; i < want.size(); ++i)
          EXPECT_TRUE(near(got[i], want[i], {.each = 8, .largest = 8}, DType::f32)) << candidate.name << ", result " << i;
      }
    }
}

/// A program that computes the loss of logits, a parameter, as one rank of one or by cross_entropy, and its gradient by autodiff.
Tensor gradient_of(Backend& backend, const Loss& loss, bool by_terms) {
  Program program;
  program.sections.push_back({.graph = {}, .phase = Phase::forward});
  Builder b(program, 0);
  const Value logits = b.parameter("logits", loss.logits.shape(), Initializer{}, loss.logits.dtype());
  const Value targets = b.input("targets", loss.targets.dtype(), loss.targets.shape());
  const Value weights = b.input("weights", loss.weights->dtype(), loss.weights->shape());
  if (by_terms) {
    const Value terms = b(Op::vocabulary_terms, {logits, targets}, on_rank(loss.terms(), 0, loss.classes()));
    const Attrs attrs = on_rank(loss.attrs(), 0, loss.classes());
    program.loss_sum = b.append(Op::vocabulary_cross_entropy, {logits, targets, terms, weights}, attrs)[0];
  } else {
    program.loss_sum = b.append(Op::cross_entropy, {logits, targets, weights}, loss.attrs())[0];
  }
  autodiff(program);
  verify(program, "autodiff");
  Interpreter interpreter(backend, program);
  interpreter.set("logits", loss.logits);
  interpreter.set("targets", loss.targets);
  interpreter.set("weights", *loss.weights);
  interpreter.run(Phase::forward);
  interpreter.run(Phase::backward);
  return interpreter.get("gradient.logits");
}

TEST(VocabularyCrossEntropy, IsDifferentiatedLikeCrossEntropy) {
  const Loss loss = losses(DType::f32)[2];
  for (const BackendUnderTest& candidate : backends_and_reference()) {
    const auto backend = candidate.make();
    EXPECT_EQ(gradient_of(*backend, loss, true), gradient_of(*backend, loss, false)) << candidate.name;
  }
}

TEST(VocabularyCrossEntropy, NamesATargetOutsideAllClasses) {
  for (const BackendUnderTest& candidate : backends_and_reference()) {
    const auto backend = candidate.make();
    Loss loss = losses(DType::f32)[0];
    loss.targets.set(8, 37);
    try {
      terms_of_ranks(*backend, loss, {10, 27});
      ADD_FAILURE() << candidate.name;
    } catch (const Error& error) {
      EXPECT_EQ(error.message(),
                "vocabulary_terms: target 37 at [1, 1] is outside the classes 0..36; mark a row without a target with ignore_index");
    }
  }
}

// --- cases of the driver: against the reference, on any number of threads

Attrs some_columns(int64_t first, int64_t classes, double smoothing) {
  return {{"first", first}, {"classes", classes}, {"label_smoothing", smoothing}};
}

// The sum of the logits cancels.
const Cases vocabulary_terms_cases(Op::vocabulary_terms, {.each = 4, .largest = 16}, [](Suite& s) {
  for (const double smoothing : {0.0, 0.1}) {
    for (const int64_t first : {0, 5, 20})
      s.add({s.normal({5, 37}, 3), s.integers({5}, 57, DType::i64)}, some_columns(first, 57, smoothing));
    s.add({s.normal({37}, 3), s.integers({}, 40)}, some_columns(3, 40, smoothing));
    s.add({s.normal({2, 3, 1}, 3), s.integers({2, 3}, 4)}, some_columns(2, 4, smoothing));
    s.add({s.normal({0, 5}, 3), s.integers({0}, 10)}, some_columns(5, 10, smoothing));
    for (const Shape& x : large_rows())
      s.add_large({s.uniform(x, -4, 4), s.integers({x[0]}, 2 * x[1])}, some_columns(x[1], 2 * x[1], smoothing));
  }
});

/// Terms of `ranks` with 19 classes each.
Tensor some_terms(Suite& s, int64_t ranks, int64_t rows) {
  Tensor terms(DType::f64, {ranks, rows, 4});
  const Tensor peaks = s.uniform({ranks, rows}, -4, 4), sums = s.uniform({ranks, rows}, 1, 19), others = s.uniform({ranks, rows}, -9, 9);
  for (int64_t i = 0; i < ranks * rows; ++i) {
    terms.set(4 * i, peaks.at(i));
    terms.set(4 * i + 1, sums.at(i));
    if (i < rows) terms.set(4 * i + 2, others.at(i));
    terms.set(4 * i + 3, others.at(i));
  }
  return terms;
}

const Cases vocabulary_cross_entropy_cases(Op::vocabulary_cross_entropy, {.each = 4, .largest = 4}, [](Suite& s) {
  for (const int64_t rows : {int64_t{0}, int64_t{1}, int64_t{5}, int64_t{3001}})
    for (const int64_t ranks : {1, 2, 3})
      for (const bool weighted : {false, true}) {
        std::vector<Tensor> in = {s.normal({rows, 19}, 3), s.integers({rows}, 19 * ranks), some_terms(s, ranks, rows)};
        if (weighted) in.push_back(s.uniform({rows}, 0.1, 2));
        const auto declare = [&](const Attrs& attrs) {
          OpCase& c = s.add(in, attrs);
          c.parameters.clear();
          if (rows > 1000) c.dtypes = {DType::f32, DType::bf16, DType::f16};  // in f64 the order of so many terms is visible
        };
        declare(some_columns(0, 19 * ranks, 0));
        Attrs attrs = some_columns(0, 19 * ranks, 0.2);
        attrs.set("z_loss", 1e-2);
        declare(attrs);
      }
});

// p - 1 cancels: relative to the largest.
const Cases vocabulary_cross_entropy_backward_cases(Op::vocabulary_cross_entropy_backward, {.each = 8, .largest = 8}, [](Suite& s) {
  for (const Shape& x : {Shape{5, 37}, Shape{1, 129}, Shape{3, 1}, Shape{0, 5}, Shape{300, 517}})
    for (const int64_t first : {int64_t{0}, x[1]})
      for (const bool weighted : {false, true}) {
        Tensor softmax(DType::f64, {x[0], 2});
        const Tensor sums = s.uniform({x[0]}, 1, 300);
        for (int64_t r = 0; r < x[0]; ++r) {
          softmax.set(2 * r, 12);  // as large as any logit
          softmax.set(2 * r + 1, sums.at(r));
        }
        std::vector<Tensor> in = {s.normal(x, 3), s.integers({x[0]}, 2 * x[1]), softmax, Tensor::scalar(0.37, DType::f64)};
        if (weighted) in.push_back(s.uniform({x[0]}, 0.1, 2));
        s.add(in, some_columns(first, 2 * x[1], 0)).statistics = {2};
        Attrs attrs = some_columns(first, 2 * x[1], 0.2);
        attrs.set("z_loss", 1e-2);
        s.add(in, attrs).statistics = {2};
      }
});

}  // namespace
}  // namespace st::conformance
