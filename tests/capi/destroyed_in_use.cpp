// A handle that is destroyed while a call on it, or on an object made from it, is inside: BUSY, or gone for the next call, never a crash.
// Objects made from it keep it alive.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "handle_calls.h"
#include "sanitized.h"

namespace {

using namespace st::test;

const HandleCall& destroy_of(std::string_view kind) {
  return *std::ranges::find_if(handle_calls(), [&](const HandleCall& row) { return row.is_destroy() && row.kind == kind; });
}

/// One thread calls until the handle is gone, while another destroys it. The call's other arguments come from `other`.
void destroy_during(const HandleCall& row, AllKinds& other) {
  using Clock = std::chrono::steady_clock;
  AllKinds w;
  const AnyHandle handle = w.of(row.kind);
  std::atomic<int64_t> calls{0};
  std::thread caller([&] {
    const auto end = Clock::now() + std::chrono::seconds(60);
    st_status status = ST_OK;
    for (; status != ST_INVALID_HANDLE && Clock::now() < end; ++calls) {
      status = row.call(w, handle);
      EXPECT_NE(status, ST_INTERNAL) << st_last_error();
    }
    EXPECT_EQ(status, ST_INVALID_HANDLE) << "after " << calls << " calls";
  });
  while (calls == 0) std::this_thread::yield();
  st_status status = ST_BUSY;
  while (status == ST_BUSY) status = destroy_of(row.kind).call(other, handle);
  EXPECT_TRUE(works(status));
  caller.join();
}

TEST(DestroyedInUse, ByAnotherThreadIsBusyOrGone) {
  AllKinds other;
  int row_number = 0;
  for (const HandleCall& row : handle_calls()) {
    if (st::kSanitized && ++row_number % 8 != 0) continue;  // still covers each kind
    SCOPED_TRACE(std::string(row.function) + " " + row.argument);
    if (!row.is_destroy()) destroy_during(row, other);
  }
}

TEST(DestroyedInUse, AModelIsBusyInsideItsOwnCallbacks) {
  SmallRun run;
  const std::string before = run.digest();
  struct Stream {
    st_model* model;
    std::string bytes;
    size_t at = 0;
    int asked = 0;
    void ask() {
      ++asked;
      EXPECT_TRUE(fails(ST_BUSY, st_model_destroy(model), {"st_model_destroy", "model"}));
      std::thread([this] { EXPECT_TRUE(fails(ST_BUSY, st_model_destroy(model))); }).join();
    }
  } stream{run.model, {}};
  const auto write = [](void* user, const void* bytes, int64_t count) {
    auto& s = *static_cast<Stream*>(user);
    s.ask();
    s.bytes.append(static_cast<const char*>(bytes), static_cast<size_t>(count));
    return st_status{ST_OK};
  };
  const auto read = [](void* user, void* bytes, int64_t room, int64_t* count) {
    auto& s = *static_cast<Stream*>(user);
    s.ask();
    *count = std::min(room, static_cast<int64_t>(s.bytes.size() - s.at));
    std::memcpy(bytes, s.bytes.data() + s.at, static_cast<size_t>(*count));
    s.at += static_cast<size_t>(*count);
    return st_status{ST_OK};
  };
  EXPECT_TRUE(works(st_model_write(run.model, write, &stream)));
  EXPECT_GT(std::exchange(stream.asked, 0), 0);
  EXPECT_TRUE(works(st_model_read(run.model, read, &stream, nullptr, nullptr)));
  EXPECT_GT(stream.asked, 0);
  EXPECT_EQ(run.digest(), before);
}

/// An op that calls the library from its callbacks.
struct CallingOp {
  static st_status shape(void* user, int32_t, const st_op_type* inputs, int32_t, st_op_type* outputs) {
    auto& op = *static_cast<CallingOp*>(user);
    ++op.shapes;
    if (op.graph != nullptr) {
      EXPECT_TRUE(fails(ST_BUSY, st_graph_destroy(op.graph), {"st_graph_destroy"}));
    }
    outputs[0] = inputs[0];
    return ST_OK;
  }
  static st_status forward(void* user, int32_t, const st_view* inputs, int32_t, const st_view* outputs) {
    auto& op = *static_cast<CallingOp*>(user);
    if (op.trainer != nullptr) {
      ++op.forwards;
      EXPECT_TRUE(fails(ST_BUSY, st_trainer_destroy(op.trainer), {"st_trainer_destroy"}));
      EXPECT_TRUE(fails(ST_BUSY, st_model_destroy(op.model), {"st_model_destroy"}));
      op.context.reset();  // the model keeps it alive
    }
    std::memcpy(outputs[0].data, inputs[0].data, static_cast<size_t>(inputs[0].bytes));
    return ST_OK;
  }
  static st_status backward(void*, int32_t, const st_view*, int32_t, const st_view*, const st_view* d_outputs, const st_view* d_inputs) {
    std::memcpy(d_inputs[0].data, d_outputs[0].data, static_cast<size_t>(d_outputs[0].bytes));
    return ST_OK;
  }

  HeldContext context;
  st_graph* graph = nullptr;
  st_trainer* trainer = nullptr;
  st_model* model = nullptr;
  int shapes = 0, forwards = 0;
};

TEST(DestroyedInUse, AGraphInsideAnOpsShapeAndATrainerInsideAnOpsForwardAreBusy) {
  CallingOp op;
  ASSERT_TRUE(works(st_context_create(nullptr, op.context.out())));
  auto callbacks = filled(st_op_callbacks_init);
  callbacks.shape = CallingOp::shape;
  callbacks.forward = CallingOp::forward;
  callbacks.backward = CallingOp::backward;
  ASSERT_TRUE(works(st_op_register(op.context, "calling", &callbacks, &op)));
  ASSERT_TRUE(works(st_graph_create(op.context, &op.graph)));
  const int64_t column[] = {ST_BATCH, 1}, one[] = {1};
  st_value x = 0, y = 0, w = 0, loss = 0;
  ASSERT_TRUE(works(st_graph_input(op.graph, "x", ST_F32, 2, column, &x)));
  ASSERT_TRUE(works(st_graph_input(op.graph, "y", ST_F32, 2, column, &y)));
  ASSERT_TRUE(works(st_graph_parameter(op.graph, "w", 1, one, ST_INIT_ONES, 0, &w)));
  const st_value product[] = {x, w};
  st_value made = 0;
  ASSERT_TRUE(works(st_graph_op(op.graph, "mul", 2, product, nullptr, 1, &made)));
  ASSERT_TRUE(works(st_graph_op(op.graph, "calling", 1, &made, nullptr, 1, &made)));
  EXPECT_GT(op.shapes, 0);
  const st_value pair[] = {made, y};
  ASSERT_TRUE(works(st_graph_op(op.graph, "mse", 2, pair, nullptr, 1, &loss)));
  ASSERT_TRUE(works(st_graph_loss(op.graph, loss)));
  auto model = hold<HeldModel>(st_model_create, op.graph, 1);

  op.shapes = 0;
  ASSERT_TRUE(works(st_graph_destroy(std::exchange(op.graph, nullptr))));  // the model has a copy
  const auto recipe = hold<HeldRecipe>(st_recipe_create, R"({"batch": 2})");
  auto trainer = hold<HeldTrainer>(st_trainer_create, model, recipe, nullptr);
  EXPECT_GT(op.shapes, 0);

  float values[] = {1, 2};
  const int64_t dims[] = {2, 1};
  const st_named_view batch[] = {{"x", {ST_F32, 2, dims, nullptr, values, 8}}, {"y", {ST_F32, 2, dims, nullptr, values, 8}}};
  op.trainer = trainer;
  op.model = model;
  EXPECT_TRUE(works(st_trainer_step(trainer, 2, batch, nullptr)));
  EXPECT_TRUE(works(st_trainer_step(trainer, 2, batch, nullptr))) << "the context's handle is gone";
  EXPECT_EQ(op.forwards, 2);
}

TEST(DestroyedInUse, DataGoesInsideItsFillAndIsReleasedWithItsTrainer) {
  struct Source {
    st_data* data = nullptr;
    std::atomic<int> fills{0}, releases{0};
  } source;
  const auto fill = [](void* user, int64_t, const int64_t*, int64_t n, const st_view* views) {
    auto& s = *static_cast<Source*>(user);
    if (s.fills++ == 0) {
      EXPECT_TRUE(works(st_data_destroy(s.data)));
    }
    for (int64_t i = 0; i < n; ++i) std::memset(views[i].data, 0, static_cast<size_t>(views[i].bytes));
    return st_status{ST_OK};
  };
  const auto release = [](void* user) { ++static_cast<Source*>(user)->releases; };
  SmallRun run;
  const int64_t dims[] = {kSmallContext};
  const st_field fields[] = {{"tokens", ST_I32, 1, dims}, {"targets", ST_I32, 1, dims}};
  ASSERT_TRUE(works(st_data_callback(run.context, 12, 2, fields, fill, release, &source, &source.data)));
  auto trainer = hold<HeldTrainer>(st_trainer_create, run.model, run.recipe, source.data);
  EXPECT_TRUE(works(st_trainer_run(trainer, 4, nullptr, nullptr)));
  EXPECT_GT(source.fills, 1);
  EXPECT_EQ(source.releases, 0);
  trainer.reset();
  EXPECT_EQ(source.releases, 1);
}

TEST(DestroyedInUse, ATensorsMemoryLivesAsLongAsItsExport) {
  HeldTensor imported;
  {
    AllKinds w;
    st_view mine;
    ASSERT_TRUE(works(st_tensor_view(w.tensor, &mine)));
    static_cast<float*>(mine.data)[3] = 7;
    const auto context = hold<HeldContext>(st_context_create, nullptr);
    ASSERT_TRUE(works(st_tensor_from_dlpack(context, std::exchange(w.managed, nullptr), imported.out())));
  }
  st_view view;
  ASSERT_TRUE(works(st_tensor_view(imported, &view)));
  EXPECT_EQ(static_cast<const float*>(view.data)[3], 7);
}

}  // namespace
