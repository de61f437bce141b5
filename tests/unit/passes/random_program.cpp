#include "random_program.h"

#include <random>
#include <string>

#include "ir/build.h"
#include "passes/accumulate.h"
#include "passes/autodiff.h"
#include "passes/clip.h"
#include "passes/dropout.h"
#include "passes/fuse.h"
#include "passes/scale_loss.h"
#include "passes/update.h"

namespace st {
namespace {

constexpr int64_t kWidth = 6;

/// Grows a graph of [batch, 6] values by one op or a small group of ops at a time.
class Growth {
 public:
  Growth(Program& program, uint64_t seed) : b_(program, 0), random_(seed) {
    values_.push_back(b_.input("x", DType::f32, {kBatch, kWidth}));
    target_ = b_.input("y", DType::f32, {kBatch, kWidth});
    values_.push_back(b_.add(b_.matmul(values_[0], parameter({kWidth, kWidth})), parameter({kWidth})));
  }

  void step() {
    const Value x = any();
    switch (random_() % 14) {
      case 0:
        return keep(b_(Op::relu, {x}));
      case 1:
        return keep(b_(Op::gelu, {x}));
      case 2:
        return keep(b_.add(x, any()));
      case 3:
        return keep(b_.mul(x, any()));
      case 4:
        return keep(b_.add(b_.matmul(x, parameter({kWidth, kWidth})), parameter({kWidth})));
      case 5:
        return keep(b_.reshape(b_(Op::tanh, {b_.reshape(x, {kWidth * kBatch})}), {kBatch, kWidth}));
      case 6:
        return keep(b_(Op::layer_norm, {x, parameter({kWidth}), parameter({kWidth})}));
      case 7:
        return keep(b_(Op::softmax, {x}));
      case 8:
        return keep(split_and_join(x));
      case 9:
        return keep(b_.dropout(x, 0.25));
      case 10:
        return keep(b_.sub(x, b_.reshape(b_.sum(x, {1}), {kBatch, 1})));
      case 11:
        return keep(b_(Op::where, {b_(Op::compare, {x, any()}), x, any()}));
      case 12:
        return keep(b_.scale(x, 0.5));
      default:
        return scoped(x);
    }
  }

  void finish(Program& program) {
    // All of the newest values enter the sum, so that most of the graph is alive.
    Value sum = values_.back();
    for (size_t i = 2; i <= 4 && i <= values_.size(); ++i) sum = b_.add(sum, values_[values_.size() - i]);
    const auto loss = b_.append(Op::mse, {sum, target_});
    program.outputs.push_back({"prediction", sum});
    program.loss_sum = loss[0];
    program.loss_count = loss[1];
  }

 private:
  Value any() { return values_[random_() % values_.size()]; }
  void keep(Value v) { values_.push_back(v); }
  Value parameter(const Shape& shape) {
    return b_.parameter(text("p", parameters_++), shape, {.kind = Init::uniform, .scale = 0.5, .values = {}});
  }

  Value split_and_join(Value x) {
    auto pieces = b_.append(Op::split, {x}, {{"axis", int64_t{1}}, {"sizes", Ints{2, 1, 3}}});
    std::swap(pieces[0], pieces[2]);
    return b_(Op::concat, pieces, {{"axis", int64_t{1}}});
  }

  void scoped(Value x) {
    b_.enter(text("scope.", scopes_++));
    keep(b_.matmul(x, parameter({kWidth, kWidth})));
    b_.leave();
    keep(b_.add(values_.back(), parameter({kWidth})));
  }

  Builder b_;
  std::mt19937_64 random_;
  std::vector<Value> values_;
  Value target_;
  int parameters_ = 0, scopes_ = 0;
};

}  // namespace

Program random_program(uint64_t seed, int ops) {
  Program program;
  program.sections.push_back({{}, Phase::forward, 0, 0});
  Growth growth(program, seed);
  for (int i = 0; i < ops; ++i) growth.step();
  growth.finish(program);
  return program;
}

Program training_program(const Program& model, int64_t batch, int64_t micro_batches, double max_norm, double dropout) {
  Program program = bind(model, batch);
  set_dropout(program, dropout, 1);
  scale_loss(program, micro_batches);
  autodiff(program);
  accumulate(program, micro_batches);
  clip(program, max_norm);
  update(program, [](const Slot&, bool) { return OptimizerChoice{}; });
  fuse(program);
  return program;
}

}  // namespace st
