#include "product_run.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "base/text.h"
#include "guarded_memory.h"
#include "trial_journal.h"

namespace st::fuzz {
namespace {

/// Matrices in memory; gaps hold NaN, which would show in every sum that reads one.
struct Laid {
  Placing place;
  GuardedMemory memory;

  Laid(Draw& draw, const Placing& at) : place(at), memory(draw, at.extent() * bytes_of(at.type), bytes_of(at.type)) {}
  Laid(Draw& draw, const Placing& at, const std::vector<float>& values) : Laid(draw, at) {
    const float* next = values.data();
    place.each([&](int64_t element) { put(memory.data(), place.type, element, *next++); });
  }

  GemmSide side() const { return {memory.data(), place.at, place.step}; }

  /// The elements' bits; overwrites them with 0xFF, so that anything else in the memory was written to a gap.
  std::vector<uint32_t> take() const {
    std::vector<uint32_t> all;
    all.reserve(static_cast<size_t>(place.count()));
    const int64_t bytes = bytes_of(place.type);
    place.each([&](int64_t element) {
      all.push_back(bits_at(memory.data(), place.type, element));
      std::memset(memory.data() + element * bytes, 0xFF, static_cast<size_t>(bytes));
    });
    return all;
  }
};

Placing vector_of(int64_t n, DType type) { return {1, n, 1, {n, 1}, 0, type}; }

/// The layout of a matrix of the epilogue: C's or any other.
Placing draw_side(Draw& draw, const Placing& c) {
  const MatrixStrides same = c.at;
  Placing side = draw_place(draw, c, 0.2, 0.2);
  if (draw.chance(0.3)) side.at = same;
  if (side.at.row == 0) side.at.row = 1;
  if (side.at.column == 0) side.at.column = 1;
  Placing one = side;
  one.batch = 1;
  side.step = one.extent() + (draw.chance(0.5) ? 0 : draw.in(1, 40));
  return side;
}

}  // namespace

Workers& workers_of(int threads) {
  static std::array<std::unique_ptr<Workers>, 5> all;
  std::unique_ptr<Workers>& workers = all.at(static_cast<size_t>(threads));
  if (workers == nullptr) workers = std::make_unique<Workers>(threads);
  return *workers;
}

void ProductTrial::finding(const std::string& what) const { journal().finding(set.name, what); }

Written ProductTrial::run(const ProductProblem& product, const Way& way) {
  const GemmProblem& p = product.gemm;
  const Contents& from = product.contents;
  const Stages& stages = product.stages;
  const Placing at_c = place_of_c(p);
  std::vector<Laid> inputs;
  inputs.reserve(5);
  const auto input = [&](const Placing& place, const std::vector<float>& values) { return &inputs.emplace_back(draw, place, values); };

  GemmOperands operands;
  if (!way.without_product) operands.a = input(place_of_a(p), from.a)->memory.data();
  if (!way.without_product && way.packed == nullptr) operands.b = input(place_of_b(p), from.b)->memory.data();
  if (p.bias) operands.bias = input(vector_of(p.n, p.c_type), from.bias)->memory.data();
  operands.packed_b = way.packed;
  const Laid c = p.beta != 0 ? Laid(draw, at_c, from.c) : Laid(draw, at_c);
  operands.c = c.memory.data();

  GemmEpilogue epilogue;
  epilogue.activation = stages.activation;
  if (stages.derivative) epilogue.derivative_at = input(draw_side(draw, at_c), from.derivative)->side();
  if (stages.residual) epilogue.residual = input(draw_side(draw, at_c), from.residual)->side();
  const Laid pre_activation(draw, stages.pre_activation ? draw_side(draw, at_c) : Placing{});
  if (stages.pre_activation) epilogue.pre_activation = pre_activation.side();
  const Laid sums(draw, stages.column_sums ? vector_of(p.n, p.c_type) : Placing{});
  if (stages.column_sums) epilogue.column_sums = sums.memory.data();
  if (stages.any()) operands.epilogue = &epilogue;

  const int64_t needed = set.gemm->workspace(p, way.schedule, way.threads);
  if (way.scratch >= 0 && way.scratch < needed) finding(text("a plan's scratch is ", way.scratch, " bytes, the run needs ", needed));
  const GuardedMemory scratch(draw, std::max(way.scratch, needed), 64);
  set.gemm->run(p, way.schedule, operands, {scratch.data(), static_cast<size_t>(scratch.size())}, workers_of(way.threads));

  Written written{c.take(), pre_activation.take(), sums.take()};
  if (!c.memory.is_untouched()) finding("a gap of C was written to");
  if (!pre_activation.memory.is_untouched()) finding("a gap of the pre-activation was written to");
  return written;
}

}  // namespace st::fuzz
