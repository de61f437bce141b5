#include "conformance.h"

namespace st::conformance {
namespace {

// A copy: the same bits everywhere.
const Cases gather_cases(Op::gather, {}, [](Suite& s) {
  for (const DType dtype : {DType::i32, DType::i64}) {
    s.add({s.normal({4, 5}), s.integers({4, 7}, 5, dtype)});
    s.add({s.normal({5, 4}), s.integers({3, 4}, 5, dtype)}, {{"axis", int64_t{0}}});
    s.add({s.normal({2, 5, 3}), s.integers({2, 7, 3}, 5, dtype)}, {{"axis", int64_t{1}}});
    s.add({s.normal({37, 129}), s.integers({37, 1}, 129, dtype)});
    s.add({s.normal({3, 5}), s.integers({3, 0}, 5, dtype)});
    s.add({s.normal({9}), s.integers({37}, 9, dtype)});
  }
});

// Sums in index order, in fp32 or better: a few units of the largest.
const Cases gather_backward_cases(Op::gather_backward, {.each = 2, .largest = 4}, [](Suite& s) {
  for (const DType dtype : {DType::i32, DType::i64}) {
    s.add({s.integers({4, 7}, 5, dtype), s.normal({4, 7})}, {{"size", int64_t{5}}});
    s.add({s.integers({3, 4}, 5, dtype), s.normal({3, 4})}, {{"size", int64_t{5}}, {"axis", int64_t{0}}});
    s.add({s.integers({2, 7, 3}, 5, dtype), s.normal({2, 7, 3})}, {{"size", int64_t{5}}, {"axis", int64_t{1}}});
    s.add({s.integers({37, 1}, 129, dtype), s.normal({37, 1})}, {{"size", int64_t{129}}});
    s.add({s.integers({3, 0}, 5, dtype), s.normal({3, 0})}, {{"size", int64_t{5}}});
    s.add({s.integers({300}, 3, dtype), s.normal({300})}, {{"size", int64_t{3}}});
  }
});

}  // namespace
}  // namespace st::conformance
