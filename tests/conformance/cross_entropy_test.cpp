#include "conformance.h"

namespace st::conformance {
namespace {

struct LossRows {
  Shape logits;
  Shape targets;
};
const LossRows kLogits[] = {{{37}, {}},      {{5, 37}, {5}}, {{2, 3, 9}, {2, 3}}, {{3, 1}, {3}},
                            {{1, 129}, {1}}, {{0, 5}, {0}},  {{300, 517}, {300}}};

Tensor targets(Suite& s, const LossRows& rows, DType dtype, double ignored) {
  Tensor t = s.integers(rows.targets, rows.logits.last(), dtype);
  for (int64_t i = 0; i < t.elements(); i += 3)
    if (t.elements() > 1) t.set(i, ignored);
  return t;
}

/// Logits with a common offset: the loss and its gradient are those without it, as exactly as the logits are stored.
Tensor shifted(Tensor logits, double offset) {
  for (int64_t i = 0; i < logits.elements(); ++i) logits.set(i, logits.at(i) + offset);
  return logits;
}

// Each row is log sum exp minus a logit, which cancels; the sum is fp64.
const Cases cross_entropy_cases(Op::cross_entropy, {.each = 4, .largest = 4}, [](Suite& s) {
  for (const DType dtype : {DType::i32, DType::i64})
    for (const LossRows& rows : kLogits) {
      s.add({s.normal(rows.logits, 3), targets(s, rows, dtype, -100)});
      s.add({s.normal(rows.logits, 3), targets(s, rows, dtype, 0)}, {{"ignore_index", int64_t{0}}});
      auto& weighted = s.add({s.normal(rows.logits, 3), targets(s, rows, dtype, -100), s.uniform(rows.targets, 0.1, 2)});
      if (!weighted.parameters.empty()) weighted.parameters = {0};
      for (const double z_loss : {0.0, 1e-2})
        if (rows.logits.last() > 1)  // with one class the loss is 0 and only rounding remains
          s.add({s.normal(rows.logits, 3), targets(s, rows, dtype, -100)}, {{"label_smoothing", 0.1}, {"z_loss", z_loss}});
    }
  for (const Shape& x : large_rows()) s.add_large({s.uniform(x, -4, 4), s.integers({x[0]}, x[1], DType::i64), s.uniform({x[0]}, 0.05, 1)});
});

// p - 1 cancels: relative to the largest. The reference recomputes lse from the logits, so each storage type gets the lse of its own
// logits.
const Cases cross_entropy_backward_cases(Op::cross_entropy_backward, {.each = 8, .largest = 8}, [](Suite& s) {
  const auto reference = make_reference();
  for (const DType index : {DType::i32, DType::i64})
    for (const LossRows& rows : kLogits)
      for (const bool weighted : {false, true}) {
        OpCase forward{.op = Op::cross_entropy, .name = "forward", .in = {s.normal(rows.logits, 3), targets(s, rows, index, -100)}};
        if (weighted) forward.in.push_back(s.uniform(rows.targets, 0.1, 2));
        for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16}) {
          const OpCase stored = in_dtype(forward, dtype);
          std::vector<Tensor> in = {stored.in[0], stored.in[1], run(*reference, stored).out[2], Tensor::scalar(0.37, DType::f64)};
          if (weighted) in.push_back(stored.in[2]);
          OpCase& c = s.add(in);
          c.statistics = {2};
          c.dtypes = {dtype};
          OpCase& terms = s.add(in, {{"label_smoothing", 0.2}, {"z_loss", 1e-2}});
          terms.statistics = {2};
          terms.dtypes = {dtype};
        }
      }
  for (const double offset : {1e2, -1e4, 1e6}) {
    OpCase forward{
        .op = Op::cross_entropy, .name = "forward", .in = {shifted(s.normal({5, 37}, 3), offset), s.integers({5}, 37, DType::i32)}};
    OpCase& c = s.add({forward.in[0], forward.in[1], run(*reference, forward).out[2], Tensor::scalar(0.37, DType::f64)});
    c.statistics = {2};
    c.dtypes = {DType::f32};
  }
});

// Like the two separate ops.
const Cases fused_cross_entropy_cases(Op::fused_cross_entropy, {.each = 8, .largest = 8, .stored = 1}, [](Suite& s) {
  for (const double offset : {1e2, -1e4, 1e6})
    s.add({shifted(s.normal({5, 37}, 3), offset), s.integers({5}, 37, DType::i32), Tensor::scalar(0.37, DType::f64)}).dtypes = {DType::f32};
  for (const DType index : {DType::i32, DType::i64})
    for (const LossRows& rows : kLogits)
      for (const bool weighted : {false, true})
        for (const char* result : {"same", "bf16", "f16"}) {
          std::vector<Tensor> in = {s.normal(rows.logits, 3), targets(s, rows, index, -100), Tensor::scalar(0.37, DType::f64)};
          if (weighted) in.push_back(s.uniform(rows.targets, 0.1, 2));
          s.add(in, {{"result", std::string(result)}}).dtypes = {DType::f32};
          s.add(in, {{"result", std::string(result)}, {"label_smoothing", 0.2}, {"z_loss", 1e-2}}).dtypes = {DType::f32};
        }
  for (const Shape& x : large_rows())
    s.add_large({s.uniform(x, -4, 4), s.integers({x[0]}, x[1], DType::i64), Tensor::scalar(0.25, DType::f64), s.uniform({x[0]}, 0.05, 1)});
});

}  // namespace
}  // namespace st::conformance
