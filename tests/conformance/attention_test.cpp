#include "conformance.h"

namespace st::conformance {
namespace {

struct Heads {
  int64_t batch, queries, keys, query_heads, key_heads, size;
};
const Heads kAll[] = {
    {1, 1, 1, 1, 1, 1},     {2, 7, 7, 2, 2, 8}, {1, 5, 5, 4, 2, 4}, {1, 3, 9, 3, 1, 5}, {2, 37, 37, 2, 1, 16},
    {1, 129, 129, 1, 1, 8}, {1, 6, 4, 2, 1, 4}, {0, 3, 3, 2, 2, 4}, {1, 0, 3, 2, 2, 4}, {1, 237, 237, 2, 2, 64},
};

// Several blocks of every instruction set's size and a part of one. Most of the time goes there, so it comes with one scale.
bool is_large(const Heads& heads) { return heads.queries > 200; }

std::vector<Tensor> operands(Suite& s, const Heads& h) {
  const Shape keys = {h.batch, h.keys, h.key_heads, h.size};
  return {s.normal({h.batch, h.queries, h.query_heads, h.size}), s.normal(keys), s.normal(keys)};
}

// Scores are sums, so is the output; a score of 10 magnifies its own rounding in the exponential: some units of the largest element.
const Cases attention_cases(Op::attention, {.largest = 16}, [](Suite& s) {
  for (const bool causal : {true, false})
    for (const double scale : {0.0, 0.3})
      for (const Heads& heads : kAll)
        if (scale == 0 || !is_large(heads)) s.add(operands(s, heads), {{"causal", causal}, {"scale", scale}});
});

// Three sums one after another, over up to 237 rows. In 16 bits dy . o takes the place of the sum over keys, and o has been rounded: units
// of storage. Reference makes o and lse anew from its q and k, so each storage gets those of its own.
const Cases attention_backward_cases(Op::attention_backward, {.largest = 64, .stored = 1}, [](Suite& s) {
  const auto reference = make_reference();
  for (const bool causal : {true, false})
    for (const double scale : {0.0, 0.3})
      for (const Heads& heads : kAll) {
        if (scale != 0 && is_large(heads)) continue;
        const Attrs attrs = {{"causal", causal}, {"scale", scale}};
        const OpCase forward{.op = Op::attention, .name = "forward", .in = operands(s, heads), .attrs = attrs};
        const Tensor seed = s.normal(forward.in[0].shape());
        for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
          const OpCase stored = in_dtype(forward, dtype);
          const auto out = run(*reference, stored).out;
          OpCase& c = s.add({stored.in[0], stored.in[1], stored.in[2], out[0], out[1], seed.to(dtype)}, attrs);
          c.statistics = {4};
          c.dtypes = {dtype};
        }
      }
});

}  // namespace
}  // namespace st::conformance
