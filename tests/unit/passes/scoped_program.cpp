#include "scoped_program.h"

#include <random>
#include <vector>

#include "ir/build.h"

namespace st {
namespace {

constexpr int64_t kScopedWidth = 6;

class Blocks {
 public:
  Blocks(Program& program, uint64_t seed) : b_(program, 0), random_(seed) {
    x_ = b_.input("x", DType::f32, {kBatch, kScopedWidth});
    target_ = b_.input("y", DType::f32, {kBatch, kScopedWidth});
    x_ = linear(x_);
    reachable_.push_back(x_);
  }

  void block(int i) {
    b_.enter(text("block.", i));
    const size_t before = reachable_.size();
    if (random_() % 3 == 0) x_ = b_.add(x_, any());
    ops(1 + random_() % 3);
    for (uint64_t inner = 0, count = random_() % 3; inner < count; ++inner) {
      b_.enter(text("inner.", inner));
      ops(1 + random_() % 4);
      b_.leave();
      ops(random_() % 2);
    }
    b_.leave();
    // Later blocks can read the block's result and sometimes a value from inside it.
    const Value inside = reachable_[before + random_() % (reachable_.size() - before)];
    reachable_.resize(before);
    reachable_.push_back(x_);
    if (random_() % 4 == 0) reachable_.push_back(inside);
  }

  void finish(Program& program) {
    const auto loss = b_.append(Op::mse, {x_, target_});
    program.outputs.push_back({"prediction", x_});
    program.loss_sum = loss[0];
    program.loss_count = loss[1];
  }

 private:
  void ops(uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) reachable_.push_back(x_ = op(x_));
  }

  Value op(Value x) {
    switch (random_() % 11) {
      case 0:
        return linear(x);
      case 1:
        return b_(Op::gelu, {linear(x)});
      case 2:
        return b_.add(x, b_(Op::relu, {linear(x)}));
      case 3:
        return b_(Op::layer_norm, {x, parameter({kScopedWidth}, Init::ones), parameter({kScopedWidth}, Init::uniform)});
      case 4:
        return b_.dropout(x, 0.25);
      case 5:
        return b_.mul(x, b_(Op::sigmoid, {any()}));
      case 6:
        return b_(Op::softmax, {x});
      case 7: {
        auto pieces = b_.append(Op::split, {x}, {{"axis", int64_t{1}}, {"sizes", Ints{2, 1, 3}}});
        std::swap(pieces[0], pieces[2]);
        return b_(Op::concat, pieces, {{"axis", int64_t{1}}});
      }
      case 8:
        return b_.reshape(b_(Op::tanh, {b_.reshape(x, {kScopedWidth * kBatch})}), {kBatch, kScopedWidth});
      case 9: {  // a product with a bias and another reader that does not need it in backward
        const Value product = b_.matmul(x, parameter({kScopedWidth, kScopedWidth}, Init::uniform));
        const Value sum = b_.add(product, parameter({kScopedWidth}, Init::uniform));
        return b_.add(b_(Op::gelu, {sum}), product);
      }
      default:
        return b_.mul(b_.add(x, any()), b_.fill({1}, 0.5));
    }
  }

  Value any() { return reachable_[random_() % reachable_.size()]; }

  Value linear(Value x) {
    const Value product = b_.matmul(x, parameter({kScopedWidth, kScopedWidth}, Init::uniform));
    return b_.add(product, parameter({kScopedWidth}, Init::uniform));
  }

  Value parameter(const Shape& shape, Init init) {
    return b_.parameter(text("p", parameters_++), shape, {.kind = init, .scale = 0.5, .values = {}});
  }

  Builder b_;
  std::mt19937_64 random_;
  Value x_, target_;
  std::vector<Value> reachable_;
  int parameters_ = 0;
};

}  // namespace

Program scoped_program(uint64_t seed, int blocks) {
  Program program;
  program.sections.push_back({{}, Phase::forward, 0, 0});
  Blocks growth(program, seed);
  for (int i = 0; i < blocks; ++i) growth.block(i);
  growth.finish(program);
  return program;
}

}  // namespace st
