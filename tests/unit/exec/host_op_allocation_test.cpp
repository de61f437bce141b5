#include <gtest/gtest.h>

#include "allocation_count.h"
#include "ir/counted_loss.h"
#include "train/trainer.h"

namespace st {
namespace {

HostOp twice() {
  const auto doubled = [](const OpView& from, const OpView& to) {
    for (int64_t i = 0; i < from.bytes / 4; ++i) static_cast<float*>(to.data)[i] = 2 * static_cast<const float*>(from.data)[i];
    return 0;
  };
  return {.name = "twice",
          .outputs = 1,
          .shape =
              [](auto in, auto out) {
                out[0] = in[0];
                return 0;
              },
          .forward = [doubled](auto in, auto out) { return doubled(in[0], out[0]); },
          .backward = [doubled](auto, auto, auto dy, auto dx) { return doubled(dy[0], dx[0]); }};
}

TEST(HostOpAllocations, AStepThroughTheHostsOpMakesNone) {
  for (const char* device : {"cpu", "reference"}) {
    const auto context = std::make_shared<Context>(ContextOptions{.device = device, .threads = 1, .log = {}, .parallel = {}, .memory = {}});
    context->host_ops().add(twice());
    Program program;
    program.sections.emplace_back();
    Builder b(program, 0);
    const Value product = b.matmul(b.input("x", DType::f32, {kBatch, 4}), b.parameter("w", {4, 4}, {.kind = Init::normal, .values = {}}));
    const Value doubled = b(Op::host, {product}, *context->host_ops().attrs_of("twice"));
    const CountedLoss loss = counted_loss(b, b(Op::mean, {doubled}, {{"axes", Ints{}}}));
    program.loss_sum = loss.sum;
    program.loss_count = loss.count;
    Recipe recipe;
    recipe.device = device;
    recipe.batch = 2;
    Trainer trainer(std::make_shared<Model>(context, std::move(program), 1), recipe, nullptr);
    const std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8};
    const std::vector<HostView> batch = {plain_view("x", DType::f32, {2, 4}, x.data())};
    trainer.step(batch);
    const int64_t before = allocation_count();
    for (int i = 0; i < 20; ++i) trainer.step(batch);
    EXPECT_EQ(allocation_count(), before) << device;
  }
}

}  // namespace
}  // namespace st
