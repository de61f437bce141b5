// Graphs, host ops and host services through scaletrain.hpp.
#include <cstdlib>
#include <mutex>

#include "sine_objects.h"

namespace {

using namespace scaletrain;
using namespace scaletrain::test;

TEST_F(Hpp, EveryLayerMakesAValueOfItsShape) {
  const Context context;
  const Graph graph(context);
  const Value tokens = graph.input("tokens", DType::i32, {kBatch, 4});
  const Value x = graph.embedding("embedding", tokens, R"({"vocabulary": 16, "width": 8})");
  const Value attended = graph.attention("attention", graph.norm("norm", x, ""), R"({"heads": 2})");
  const Value y = graph.linear("head", graph.dropout("dropout", attended, R"({"rate": 0.5})"), R"({"outputs": 3})");
  EXPECT_EQ(graph.info(y).dims, (std::vector<int64_t>{kBatch, 4, 3}));
  EXPECT_EQ(graph.info(graph.mlp("mlp", y, R"({"hidden": [5], "outputs": 2})")).dims.back(), 2);
  EXPECT_EQ(thrown_status([&] { graph.linear("wrong", y, R"({"outputz": 3})"); }), Status::invalid_argument);
  EXPECT_NE(graph.text().find("attention"), std::string::npos);
}

TEST_F(Hpp, ValuesOfAnotherGraphAreRefused) {
  const Context context;
  const Graph graph(context), other(context);
  const Value x = graph.input("x", DType::f32, {kBatch, 3});
  const Value y = other.input("y", DType::f32, {kBatch, 3});  // the same id
  EXPECT_EQ(thrown_status([&] { x + y; }), Status::invalid_argument);
  EXPECT_EQ(thrown_status([&] { ops::add(x, y); }), Status::invalid_argument);
  EXPECT_EQ(thrown_status([&] { ops::concat({x, y}); }), Status::invalid_argument);
  EXPECT_EQ(thrown_status([&] { graph.op("neg", {y}); }), Status::invalid_argument);
  EXPECT_EQ(thrown_status([&] { graph.linear("l", y, R"({"outputs": 3})"); }), Status::invalid_argument);
  EXPECT_EQ(thrown_status([&] { graph.output("o", y); }), Status::invalid_argument);
  EXPECT_EQ(thrown_status([&] { graph.loss(y); }), Status::invalid_argument);
  EXPECT_EQ(thrown_status([&] { graph.info(y); }), Status::invalid_argument);
  EXPECT_EQ(graph.info(ops::add(x, x)).dims, (std::vector<int64_t>{kBatch, 3}));
}

TEST_F(Hpp, ResultsThatAnOpHasNotAreRefused) {
  const Context context;
  const Graph graph(context);
  const Value x = graph.input("x", DType::f32, {kBatch, 3});
  for (const int32_t count : {-1, 0, 2, 1 << 30})
    EXPECT_EQ(thrown_status([&] { graph.op("neg", {x}, "", count); }), Status::invalid_argument);
  EXPECT_EQ(graph.op("neg", {x}, "", 1).size(), 1U);
}

TEST_F(Hpp, OpsTakeTypedAttributesAndConstantsStay) {
  const Context context;
  const Graph graph(context);
  const std::vector<float> values = {1, 2, 3};
  const Value constant = graph.parameter("constant", view(values, {3}), false);
  const Value x = graph.input("x", DType::f32, {kBatch, 3});
  const Value mean = graph.apply("mean", {-(x * constant + x) / constant - x}, {{"axes", {0, 1}}, {"keep_dims", false}});
  EXPECT_TRUE(graph.info(mean).dims.empty());
  EXPECT_EQ(graph.apply("split", {x}, {{"axis", 1}, {"sizes", {1, 2}}}, 2).size(), 2U);
  EXPECT_EQ(graph.value(mean.id()).id(), mean.id());
  graph.output("metric.mean", mean);
  graph.loss(mean);
  const Model model(graph, 1);
  EXPECT_FALSE(model.parameter(0).trainable);
}

HostOp doubling(std::atomic<bool>& fails) {
  HostOp op;
  op.shape = [](const std::vector<OpType>& inputs) { return inputs; };
  op.forward = [&fails](const std::vector<View>& in, const std::vector<View>& out) {
    if (fails) throw Mine{6};
    for (int64_t i = 0; i < in[0].size(); ++i) out[0].as<float>()[i] = 2 * in[0].as<float>()[i];
  };
  op.backward = [](const std::vector<View>&, const std::vector<View>&, const std::vector<View>& d_out, const std::vector<View>& d_in) {
    if (d_in[0].data() == nullptr) return;
    for (int64_t i = 0; i < d_in[0].size(); ++i) d_in[0].as<float>()[i] = 2 * d_out[0].as<float>()[i];
  };
  return op;
}

TEST_F(Hpp, AnExceptionOfAHostOpArrivesAndTheStateStays) {
  Sine sine;
  std::atomic<bool> fails{false};
  sine.context.register_op("doubling", doubling(fails));
  const Graph graph(sine.context);
  const Value x = graph.input("x", DType::f32, {kBatch, 1}), y = graph.input("y", DType::f32, {kBatch, 1});
  graph.loss(graph.op("mse", {graph.op("doubling", {linear(graph, "only", x, 1, 1)}), y}, "", 2).front());
  const Model model(graph, 1);
  const Trainer trainer(model, sine.recipe);
  trainer.step(sine.batch);
  const std::string before = trainer.digest();
  fails = true;
  EXPECT_EQ(thrown_number([&] { trainer.step(sine.batch); }), 6);
  EXPECT_EQ(trainer.digest(), before);
  fails = false;
  EXPECT_EQ(trainer.step(sine.batch).step, 2);
}

TEST_F(Hpp, EveryBufferComesFromTheHostsAllocatorAndGoesBack) {
  std::atomic<int> live{0}, made{0};
  {
    ContextOptions options = Sine::one_thread();
    options.alloc = [&](size_t bytes, size_t align) {
      ++live, ++made;
      return std::aligned_alloc(align, (bytes + align - 1) / align * align);
    };
    options.free = [&](void* memory) {
      --live;
      std::free(memory);
    };
    Sine sine(options);
    EXPECT_EQ(sine.trainer.step(sine.batch).step, 1);
    const MemoryStats memory = sine.context.memory();
    EXPECT_GT(memory.allocated_bytes, 0);
    EXPECT_GE(memory.peak_bytes, memory.allocated_bytes);
    EXPECT_EQ(memory.limit_bytes, 0);
    int64_t sum = 0;
    for (const MemoryUse& use : memory.roles) sum += use.bytes;
    EXPECT_EQ(sum, memory.allocated_bytes);
    ASSERT_FALSE(memory.roles.empty());
    EXPECT_EQ(memory.roles[0].role, "parameters");
    sine.context.reset_peak();
    EXPECT_EQ(sine.context.memory().peak_bytes, memory.allocated_bytes);
    sine.context.trim();
    sine.context.cancel();  // nothing is running
    EXPECT_EQ(sine.trainer.step(sine.batch).step, 2);
  }
  EXPECT_GT(made, 0);
  EXPECT_EQ(live, 0);
}

TEST_F(Hpp, AnAllocatorThatThrowsIsOutOfMemoryOrItsOwnException) {
  ContextOptions options = Sine::one_thread();
  options.free = [](void* memory) { std::free(memory); };
  options.alloc = [](size_t, size_t) -> void* { throw std::bad_alloc(); };
  EXPECT_EQ(thrown_status([&] { Sine sine(options); }), Status::out_of_memory);
  options.alloc = [](size_t, size_t) -> void* { throw Mine{8}; };
  EXPECT_EQ(thrown_number([&] { Sine sine(options); }), 8);
}

TEST_F(Hpp, AHostsParallelForComputesTheSameBits) {
  Sine own;
  ContextOptions options;
  options.threads = 2;
  options.parallel = [](int64_t n, const std::function<void(int64_t)>& task) {
    for (int64_t i = n; i-- > 0;) task(i);
  };
  Sine host(options);
  EXPECT_EQ(host.trainer.step(host.batch).loss, own.trainer.step(own.batch).loss);
  EXPECT_EQ(host.trainer.digest(), own.trainer.digest());
}

}  // namespace
