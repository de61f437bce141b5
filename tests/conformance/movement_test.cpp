// Ops that move elements: the same bits everywhere.
#include "conformance.h"

namespace st::conformance {
namespace {

const Shape kCube = {37, 71, 53};

struct Part {
  Shape x;
  int64_t axis, first, second;
};

/// x, its axis, and two numbers of elements along it.
std::function<void(Suite&)> along(const char* first, const char* second, std::vector<Part> parts) {
  return [=](Suite& s) {
    for (const Part& part : parts) s.add({s.normal(part.x)}, {{"axis", part.axis}, {first, part.first}, {second, part.second}});
  };
}

const Cases slice_cases(Op::slice, {},
                        along("start", "end",
                              {{{37}, 0, 3, 5},
                               {{37}, 0, 0, 37},
                               {{37}, 0, 5, 5},
                               {{7, 5}, 0, 2, 6},
                               {{3, 4, 9}, 2, 1, 4},
                               {{3, 4, 9}, -2, 1, 4},
                               {{0, 9}, 1, 1, 4},
                               {{7, 5003}, 1, 1, 5000},
                               {kCube, 0, 3, 30},
                               {kCube, 1, 3, 30},
                               {kCube, 2, 3, 30}}));

const Cases pad_cases(Op::pad, {},
                      along("before", "after",
                            {{{37}, 0, 3, 5},
                             {{37}, 0, 0, 0},
                             {{0}, 0, 1, 2},
                             {{7, 5}, 0, 2, 0},
                             {{3, 4, 9}, 2, 0, 4},
                             {{3, 4, 9}, -2, 1, 1},
                             {{0, 9}, 1, 1, 4},
                             {{7, 5003}, 1, 1, 2},
                             {kCube, 0, 2, 5},
                             {kCube, 1, 2, 5},
                             {kCube, 2, 2, 5}}));

const Cases split_cases(Op::split, {}, [](Suite& s) {
  const auto add = [&](const Shape& x, int64_t axis, const Ints& sizes) {
    OpCase& c = s.add({s.normal(x)}, {{"axis", axis}, {"sizes", sizes}});
    c.seeded.clear();
    for (size_t i = 0; i < sizes.size(); ++i) c.seeded.push_back(static_cast<int32_t>(i));
  };
  add({37}, 0, {37});
  add({37}, 0, {1, 30, 6});
  add({3, 9}, -1, {4, 2, 3});
  add({7, 5}, 0, {1, 6});
  add({2, 6, 3}, 1, {0, 4, 2});
  add({0, 6}, 1, {3, 3});
  add({7, 5001}, 1, {1667, 1667, 1667});
  for (const int32_t axis : {0, 1, 2}) s.add_large({s.normal(kCube)}, {{"axis", int64_t{axis}}, {"sizes", Ints{7, 0, kCube[axis] - 7}}});
  s.add({s.normal({3, 9})}, {{"axis", int64_t{1}}, {"sizes", Ints{4, 5}}}).seeded = {1};  // the loss uses only one of the parts
});

const Cases concat_cases(Op::concat, {}, [](Suite& s) {
  s.add({s.normal({37})});
  s.add({s.normal({3}), s.normal({0}), s.normal({37})}, {{"axis", int64_t{0}}});
  s.add({s.normal({3, 2}), s.normal({3, 5}), s.normal({3, 1})});
  s.add({s.normal({2, 3}), s.normal({1, 3})}, {{"axis", int64_t{0}}});
  s.add({s.normal({2, 3, 4}), s.normal({2, 1, 4})}, {{"axis", int64_t{1}}});
  s.add({s.normal({0, 3}), s.normal({0, 4})});
  s.add({s.normal({7, 1667}), s.normal({7, 1667}), s.normal({7, 1667})});
  s.add_special({s.integers({3, 2}, 9), s.integers({3, 5}, 9)});
  for (const int32_t axis : {0, 1, 2}) {
    Shape other = kCube;
    other[axis] = 11;
    s.add_large({s.normal(kCube), s.normal(other), s.normal(kCube)}, {{"axis", int64_t{axis}}});
  }
});

const Cases transpose_cases(Op::transpose, {}, [](Suite& s) {
  const auto add = [&](const Shape& x, const Ints& order) { s.add({s.normal(x)}, {{"order", order}}); };
  add({}, {});
  add({37}, {0});
  add({3, 37}, {1, 0});
  add({129, 37}, {1, 0});
  add({3, 0}, {1, 0});
  add({2, 3, 5}, {0, 2, 1});
  add({2, 3, 5}, {2, 0, 1});
  add({2, 3, 5}, {0, 1, 2});
  add({2, 7, 3, 8}, {0, 2, 1, 3});
  add({2, 3, 4, 5}, {3, 1, 0, 2});
  add({500, 100}, {1, 0});
  s.add_special({s.integers({3, 37}, 100)}, {{"order", Ints{1, 0}}});
  for (const Ints& order : {Ints{0, 2, 1}, Ints{2, 1, 0}, Ints{1, 0, 2}, Ints{1, 2, 0}, Ints{0, 1, 2}})
    s.add_large({s.normal(kCube)}, {{"order", order}});
});

const Cases broadcast_to_cases(Op::broadcast_to, {}, [](Suite& s) {
  const auto add = [&](const Shape& from, const Ints& to) -> OpCase& { return s.add({s.normal(from)}, {{"shape", to}}); };
  add({}, {});
  add({}, {5});
  add({1}, {129});
  add({3, 1}, {2, 3, 7});
  add({1, 37}, {3, 37});
  add({37}, {3, 37});
  add({1, 1}, {3, 0});
  add({2, 1, 3, 1}, {2, 5, 3, 4});
  add({7, 1}, {7, 5003});
  add({71, 1}, {37, 71, 53}).parameters.clear();  // 142 programs of 139,231 elements would show what smaller ones do
});

// Views, not kernels. The gradient of reshape is a view too. The executor reuses a loaded slot's memory, as every test that runs a program
// shows.
const Cases reshape_cases(Op::reshape, {}, [](Suite& s) {
  s.add({s.normal({3, 4, 5})}, {{"shape", Ints{6, 10}}});
  s.add({s.normal({1})}, {{"shape", Ints{}}});
  s.add({s.normal({})}, {{"shape", Ints{1, 1}}});
});
const Cases load_cases(Op::load, {}, [](Suite& s) { s.add({}); });
const Cases tensor_share_cases(Op::tensor_share, {}, [](Suite& s) { s.add_special({s.normal({3, 4})}); });

// Forward only: the gradient gathers from other ranks.
const Cases tensor_part_cases(Op::tensor_part, {}, [](Suite& s) {
  const auto add = [&](const Tensor& x, int64_t rank, int64_t ranks) { s.add_special({x}, {{"rank", rank}, {"ranks", ranks}}); };
  add(s.normal({37}), 0, 1);
  for (int64_t rank = 0; rank < 3; ++rank) {
    add(s.normal({39}), rank, 3);
    add(s.normal({3, 5}), rank, 3);
    add(s.normal({6, 7, 5}), rank, 3);
    s.add_large({s.normal({36, 71, 53})}, {{"rank", rank}, {"ranks", int64_t{3}}});
  }
  add(s.normal({0, 3}), 1, 2);
  add(s.normal({4, 0}), 1, 2);
  for (const DType dtype : {DType::i32, DType::i64}) add(s.integers({8}, 9, dtype), 3, 4);
});

/// Copies into a slot of the value's type.
void copies(Suite& s, const std::vector<DType>& dtypes) {
  for (const DType dtype : dtypes)
    for (const Shape& shape : shapes()) {
      OpCase& c = s.add({s.normal(shape).to(dtype)});
      c.slots = {s.normal(shape).to(dtype)};
      c.dtypes = {DType::f32};
    }
}

const Cases store_cases(Op::store, {}, [](Suite& s) {
  copies(s, {DType::f32, DType::f64, DType::bf16, DType::f16, DType::i32, DType::i64});
  OpCase& flags = s.add({s.flags({37})});
  flags.slots = {s.flags({37})};
});

// One correctly rounded sum.
const Cases accumulate_cases(Op::accumulate, {}, [](Suite& s) { copies(s, {DType::f32, DType::f64, DType::bf16, DType::f16}); });

const Cases gather_cases(Op::gather, {}, [](Suite& s) {
  for (const DType dtype : {DType::i32, DType::i64}) {
    s.add({s.normal({4, 5}), s.integers({4, 7}, 5, dtype)});
    s.add({s.normal({5, 4}), s.integers({3, 4}, 5, dtype)}, {{"axis", int64_t{0}}});
    s.add({s.normal({2, 5, 3}), s.integers({2, 7, 3}, 5, dtype)}, {{"axis", int64_t{1}}});
    s.add({s.normal({37, 129}), s.integers({37, 1}, 129, dtype)});
    s.add({s.normal({3, 5}), s.integers({3, 0}, 5, dtype)});
    s.add({s.normal({9}), s.integers({37}, 9, dtype)});
  }
  for (const int32_t axis : {0, 1, 2}) {
    Shape chosen = kCube;
    chosen[axis] = 19;
    s.add_large({s.normal(kCube), s.integers(chosen, kCube[axis], DType::i64)}, {{"axis", int64_t{axis}}});
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
  for (const int64_t axis : {0, 1, 2})
    s.add_large({s.integers(kCube, 19, DType::i64), s.normal(kCube)}, {{"axis", axis}, {"size", int64_t{19}}});
});

class TensorPart : public ::testing::TestWithParam<BackendUnderTest> {};

TEST_P(TensorPart, HasTheRowsOfItsRank) {
  const auto backend = GetParam().make();
  Tensor x(DType::f32, {12, 5, 7});
  for (int64_t i = 0; i < x.elements(); ++i) x.set(i, static_cast<double>(i));
  for (const int64_t ranks : {1, 2, 3, 4})
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const OpCase c{.op = Op::tensor_part, .name = "rows", .in = {x}, .attrs = {{"rank", rank}, {"ranks", ranks}}};
      const Tensor y = run(*backend, c).out[0];
      ASSERT_EQ(y.shape(), Shape({12 / ranks, 5, 7}));
      for (int64_t i = 0; i < y.elements(); ++i)
        ASSERT_EQ(y.at(i), static_cast<double>(rank * y.elements() + i)) << rank << " of " << ranks;
    }
}

INSTANTIATE_TEST_SUITE_P(All, TensorPart, ::testing::ValuesIn(backends_and_reference()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace st::conformance
