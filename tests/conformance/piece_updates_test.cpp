// Updates of pieces of a parameter: together they are the update of the whole.
#include "conformance.h"
#include "ir/parameter_piece.h"

namespace st::conformance {
namespace {

Attrs of_piece(Attrs attrs, const ParameterPiece& piece) {
  attrs.set("dimension", int64_t{piece.dimension});
  attrs.set("segments", Ints(piece.segments.begin(), piece.segments.end()));
  attrs.set("rank", int64_t{piece.rank});
  attrs.set("ranks", int64_t{piece.ranks});
  return attrs;
}

std::vector<Tensor> update_scalars(bool skip) {
  return {Tensor::scalar(0.25, DType::f32), Tensor::scalar(skip, DType::boolean), Tensor::of({2}, {1e-2, 3}, DType::f64)};
}

/// {first, scalars, others}
std::vector<Tensor> update_inputs(Tensor first, std::vector<Tensor> others = {}, bool skip = false) {
  std::vector<Tensor> in = update_scalars(skip);
  in.insert(in.begin(), std::move(first));
  in.insert(in.end(), others.begin(), others.end());
  return in;
}

// --- each op, against the reference

const ParameterPiece kColumns{.whole = {6, 16}, .dimension = 1, .segments = {8, 8}, .rank = 1, .ranks = 2};
const ParameterPiece kRows{.whole = {12, 8}, .dimension = 0, .segments = {12}, .rank = 0, .ranks = 2};
const ParameterPiece kVector{.whole = {40}, .dimension = 0, .segments = {20, 20}, .rank = 1, .ranks = 4};

Shape shape_of(const ParameterPiece& piece) {
  Shape shape = piece.whole;
  shape[piece.dimension] = shape[piece.dimension] / piece.ranks;
  return shape;
}
Shape sums_of(const ParameterPiece& piece) { return {piece.whole.rank() < 2 ? 1 : piece.whole[0] + piece.whole[1] + 1}; }

std::vector<Tensor> variances(Suite& s, const ParameterPiece& piece) {
  const auto of = [&](const Shape& shape) { return s.uniform(shape, 0.05, 0.1); };
  if (piece.whole.rank() < 2) return {of(shape_of(piece))};
  return {of({piece.whole[0]}), of({piece.whole[1]})};
}

std::function<void(Suite&)> pieces(const std::vector<ParameterPiece>& all,
                                   const std::function<OpCase&(Suite&, const ParameterPiece&, bool)>& add) {
  return [=](Suite& s) {
    for (const ParameterPiece& piece : all)
      for (const bool skip : {false, true}) {
        OpCase& c = add(s, piece, skip);
        c.attrs = of_piece(c.attrs, piece);
        c.statistics.push_back(1);
      }
  };
}

const Cases direction_cases(Op::muon_direction, {.each = 4, .largest = 1},
                            pieces({kColumns, kRows}, [](Suite& s, const ParameterPiece& piece, bool skip) -> OpCase& {
                              OpCase& c = s.add(update_inputs(s.normal(shape_of(piece)), {}, skip), of_piece({}, piece));
                              c.slots = {s.normal(shape_of(piece))};
                              c.dtypes = {DType::f32, DType::bf16, DType::f16};
                              return c;
                            }));

const Cases muon_step_cases(Op::muon_step, {.each = 64, .largest = 64},
                            pieces({kColumns, kRows}, [](Suite& s, const ParameterPiece& piece, bool skip) -> OpCase& {
                              Shape directions = shape_of(piece);
                              directions[0] = directions[0] * piece.ranks;
                              OpCase& c = s.add(update_inputs(s.normal(directions), {}, skip), of_piece({}, piece));
                              c.slots = {s.normal(shape_of(piece))};
                              c.dtypes = {DType::f32};
                              return c;
                            }));

const Cases sums_cases(Op::adafactor_sums, {.each = 16, .largest = 4},
                       pieces({kColumns, kRows, kVector}, [](Suite& s, const ParameterPiece& piece, bool skip) -> OpCase& {
                         OpCase& c =
                             s.add(update_inputs(s.normal(shape_of(piece)), {s.normal(shape_of(piece))}, skip), of_piece({}, piece));
                         c.dtypes = {DType::f32, DType::bf16, DType::f16};
                         c.statistics = {4};
                         return c;
                       }));

const Cases size_cases(Op::adafactor_size, {.each = 16, .largest = 4},
                       pieces({kColumns, kRows, kVector}, [](Suite& s, const ParameterPiece& piece, bool skip) -> OpCase& {
                         OpCase& c =
                             s.add(update_inputs(s.normal(shape_of(piece)), {s.uniform(sums_of(piece), 0.5, 2).to(DType::f64)}, skip),
                                   of_piece({}, piece));
                         c.slots = variances(s, piece);
                         c.dtypes = {DType::f32, DType::bf16, DType::f16};
                         return c;
                       }));

const Cases adafactor_step_cases(Op::adafactor_step, {.each = 16, .largest = 4},
                                 pieces({kColumns, kRows, kVector}, [](Suite& s, const ParameterPiece& piece, bool skip) -> OpCase& {
                                   OpCase& c = s.add(update_inputs(s.normal(shape_of(piece)),
                                                                   {s.uniform(sums_of(piece), 0.5, 2).to(DType::f64),
                                                                    Tensor::scalar(3, DType::f64).reshaped({1})},
                                                                   skip),
                                                     of_piece({}, piece));
                                   c.slots = variances(s, piece);
                                   c.slots.insert(c.slots.begin(), s.normal(shape_of(piece)));
                                   c.dtypes = {DType::f32, DType::bf16, DType::f16};
                                   return c;
                                 }));

// --- all of them, against the update of the whole

Tensor ramp_of(const Shape& shape, int64_t seed) {
  Tensor x(DType::f32, shape);
  for (int64_t i = 0; i < x.elements(); ++i) x.set(i, static_cast<double>((i * 37 + seed * 11) % 101 - 50) / 50);
  return x;
}

/// How a whole tensor is cut, in a test.
struct Cut {
  ParameterPiece piece;

  ParameterPiece of_rank(int64_t rank) const {
    ParameterPiece own = piece;
    own.rank = static_cast<int32_t>(rank);
    return own;
  }
  Tensor of(const Tensor& whole, int64_t rank) const {
    Tensor part(whole.dtype(), shape_of(piece));
    of_rank(rank).each_run(0, part.elements(), [&](int64_t in_whole, int64_t in_piece, int64_t n) {
      for (int64_t i = 0; i < n; ++i) part.set(in_piece + i, whole.at(in_whole + i));
    });
    return part;
  }
};

std::vector<Cut> all_cuts() {
  return {{{.whole = {24, 16}, .dimension = 0, .segments = {24}, .ranks = 2}},
          {{.whole = {24, 16}, .dimension = 1, .segments = {16}, .ranks = 4}},
          {{.whole = {12, 36}, .dimension = 1, .segments = {12, 12, 12}, .ranks = 3}},
          {{.whole = {200, 131}, .dimension = 0, .segments = {200}, .ranks = 2}}};  // of several tasks
}

/// The pieces one after the other.
Tensor stacked_pieces(const std::vector<Tensor>& all) {
  Shape shape = all[0].shape();
  shape[0] = shape[0] * std::ssize(all);
  Tensor out(all[0].dtype(), shape);
  for (size_t rank = 0; rank < all.size(); ++rank)
    for (int64_t i = 0; i < all[rank].elements(); ++i) out.set(static_cast<int64_t>(rank) * all[rank].elements() + i, all[rank].at(i));
  return out;
}

Tensor sum_of_pieces(const std::vector<Tensor>& all) {
  Tensor out = all[0];
  for (size_t rank = 1; rank < all.size(); ++rank)
    for (int64_t i = 0; i < out.elements(); ++i) out.set(i, out.at(i) + all[rank].at(i));
  return out;
}

/// Calls of an op, by rank; `in`, `slots`: of a rank.
std::vector<Result> of_all(Backend& backend, Op op, const Cut& cut, const Attrs& attrs,
                           const std::function<std::vector<Tensor>(int64_t)>& in,
                           const std::function<std::vector<Tensor>(int64_t)>& slots) {
  std::vector<Result> all;
  for (int64_t rank = 0; rank < cut.piece.ranks; ++rank)
    all.push_back(run(
        backend,
        {.op = op, .name = "piece", .in = in(rank), .slots = slots(rank), .attrs = make_attrs(op, of_piece(attrs, cut.of_rank(rank)))}));
  return all;
}

std::vector<Tensor> first_outputs(const std::vector<Result>& all) {
  std::vector<Tensor> out;
  for (const Result& result : all) out.push_back(result.out[0]);
  return out;
}

TEST(PieceUpdates, OfMuonHaveTheBitsOfTheWhole) {
  for (const BackendUnderTest& candidate : backends_and_reference())
    for (const Cut& cut : all_cuts()) {
      const auto backend = candidate.make();
      const Attrs attrs{{"weight_decay", 0.1}};
      const Shape& shape = cut.piece.whole;
      const Tensor gradient = ramp_of(shape, 1), parameter = ramp_of(shape, 2), momentum = ramp_of(shape, 3);
      const Result whole = run(*backend, {.op = Op::muon,
                                          .name = "whole",
                                          .in = update_inputs(gradient),
                                          .slots = {parameter, momentum},
                                          .attrs = make_attrs(Op::muon, attrs)});
      const auto directions = of_all(
          *backend, Op::muon_direction, cut, attrs, [&](int64_t rank) { return update_inputs(cut.of(gradient, rank)); },
          [&](int64_t rank) { return std::vector{cut.of(momentum, rank)}; });
      const Tensor gathered = stacked_pieces(first_outputs(directions));
      const auto steps = of_all(
          *backend, Op::muon_step, cut, attrs, [&](int64_t) { return update_inputs(gathered); },
          [&](int64_t rank) { return std::vector{cut.of(parameter, rank)}; });
      for (size_t rank = 0; rank < steps.size(); ++rank) {
        const auto r = static_cast<int64_t>(rank);
        const std::string on = text(candidate.name, ", ", shape, ", rank ", rank);
        EXPECT_TRUE(directions[rank].slots[0] == cut.of(whole.slots[1], r)) << on;
        const Tensor want = cut.of(whole.slots[0], r);
        for (int64_t i = 0; i < want.elements(); ++i)  // the reference's X is of doubles, the ranks send floats
          ASSERT_NEAR(steps[rank].slots[0].at(i), want.at(i), candidate.name == "reference" ? 1e-7 : 0) << on << ", element " << i;
      }
    }
}

// A column's sum is one of each rank's rows.
TEST(PieceUpdates, OfAdafactorAreThoseOfTheWholeWithinRounding) {
  std::vector<Cut> all = all_cuts();
  all.push_back({{.whole = {48}, .dimension = 0, .segments = {24, 24}, .ranks = 2}});
  for (const BackendUnderTest& candidate : backends_and_reference())
    for (const Cut& cut : all) {
      const auto backend = candidate.make();
      const Attrs attrs{{"weight_decay", 0.1}};
      const Shape& shape = cut.piece.whole;
      const Tensor gradient = ramp_of(shape, 1), parameter = ramp_of(shape, 2);
      const bool is_vector = shape.rank() < 2;
      const auto positive = [](const Shape& of) {
        Tensor x(DType::f32, of);
        for (int64_t i = 0; i < x.elements(); ++i) x.set(i, 0.05 + 0.001 * static_cast<double>(i % 17));
        return x;
      };
      std::vector<Tensor> kept = {positive({shape[0]})};
      if (!is_vector) kept.push_back(positive({shape[1]}));
      std::vector<Tensor> slots = kept;
      slots.insert(slots.begin(), parameter);
      const Result whole = run(
          *backend,
          {.op = Op::adafactor, .name = "whole", .in = update_inputs(gradient), .slots = slots, .attrs = make_attrs(Op::adafactor, attrs)});

      const auto own_kept = [&](int64_t rank) { return is_vector ? std::vector{cut.of(kept[0], rank)} : kept; };
      const Tensor sums = sum_of_pieces(first_outputs(of_all(
          *backend, Op::adafactor_sums, cut, attrs,
          [&](int64_t rank) { return update_inputs(cut.of(gradient, rank), {cut.of(parameter, rank)}); },
          [](int64_t) { return std::vector<Tensor>{}; })));
      const auto sizes = of_all(
          *backend, Op::adafactor_size, cut, attrs, [&](int64_t rank) { return update_inputs(cut.of(gradient, rank), {sums}); }, own_kept);
      const Tensor squares = sum_of_pieces(first_outputs(sizes));
      const auto steps = of_all(
          *backend, Op::adafactor_step, cut, attrs,
          [&](int64_t rank) {
            return update_inputs(cut.of(gradient, rank), {sums, squares});
          },
          [&](int64_t rank) {
            std::vector<Tensor> own = sizes[static_cast<size_t>(rank)].slots;
            own.insert(own.begin(), cut.of(parameter, rank));
            return own;
          });
      const auto near = [&](const Tensor& got, const Tensor& want, const char* what) {
        for (int64_t i = 0; i < want.elements(); ++i)
          ASSERT_NEAR(got.at(i), want.at(i), 1e-6) << candidate.name << ", " << text(shape) << ", " << what << " " << i;
      };
      for (size_t rank = 0; rank < steps.size(); ++rank) {
        const auto r = static_cast<int64_t>(rank);
        near(steps[rank].slots[0], cut.of(whole.slots[0], r), "parameter");
        near(sizes[rank].slots[0], is_vector ? cut.of(whole.slots[1], r) : whole.slots[1], "variance");
        if (!is_vector) near(sizes[rank].slots[1], whole.slots[2], "variance of a column");
      }
    }
}

}  // namespace
}  // namespace st::conformance
