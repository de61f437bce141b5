#include "base/error.h"
#include "conformance.h"

namespace st::conformance {
namespace {

// A copy: the same bits everywhere.
const Cases embedding_cases(Op::embedding, {}, [](Suite& s) {
  for (const DType dtype : {DType::i32, DType::i64}) {
    for (const Shape& tokens : {Shape{}, Shape{1}, Shape{37}, Shape{3, 7}, Shape{0}})
      for (const int64_t width : {1, 9, 129, 0}) s.add({s.normal({11, width}), s.integers(tokens, 11, dtype)});
    s.add({s.normal({5, 3}), s.integers({4, 2}, 5, dtype)});
  }
  s.add_large({s.normal({997, 129}), s.integers({4, 150}, 997, DType::i64)});
});

// Rows are added in token order, in fp32 or better: a few units of the largest.
const Cases embedding_backward_cases(Op::embedding_backward, {.each = 2, .largest = 4}, [](Suite& s) {
  for (const DType dtype : {DType::i32, DType::i64})
    for (const Shape& tokens : {Shape{1}, Shape{37}, Shape{3, 7}, Shape{0}, Shape{300}})
      for (const int64_t width : {1, 9, 129}) {
        Shape dy = tokens;
        dy.push_back(width);
        s.add({s.integers(tokens, 11, dtype), s.normal(dy)}, {{"rows", int64_t{11}}});
      }
  s.add_large({s.integers({4, 150}, 97, DType::i64), s.normal({4, 150, 129})}, {{"rows", int64_t{997}}});  // most rows receive nothing
});

TEST(Embedding, NamesTheTokenOutsideTheVocabularyAndItsPlace) {
  for (const BackendUnderTest& candidate : backends_and_reference()) {
    const auto backend = candidate.make();
    for (const double token : {11.0, -1.0}) {
      OpCase c{.op = Op::embedding, .name = "outside", .in = {Tensor(DType::f32, {11, 5}), Tensor(DType::i32, {2, 3})}};
      c.in[1].set(4, token);
      try {
        run(*backend, c);
        ADD_FAILURE() << candidate.name << " took token " << token << " of a vocabulary of 11";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Code::invalid_argument) << candidate.name;
        EXPECT_NE(error.message().find(std::to_string(static_cast<int>(token))), std::string::npos) << error.message();
        EXPECT_NE(error.message().find("[1, 1]"), std::string::npos) << error.message();
      }
    }
  }
}

}  // namespace
}  // namespace st::conformance
