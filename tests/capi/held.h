// Shared by the tests of the C ABI: a handle that is destroyed with its scope, and the check of a call that must fail.
#pragma once

#include <gtest/gtest.h>
#include <scaletrain/scaletrain.h>

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace st::test {

/// Owns a handle: Held<st_context, st_context_destroy>.
template <class Handle, st_status (*destroy)(Handle*)>
class Held {
 public:
  Held() = default;
  ~Held() { destroy(handle_); }
  Held(Held&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Held& operator=(Held&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  operator Handle*() const { return handle_; }
  Handle** out() { return &handle_; }
  void reset() {
    destroy(handle_);
    handle_ = nullptr;
  }

 private:
  Handle* handle_ = nullptr;
};

using HeldContext = Held<st_context, st_context_destroy>;
using HeldGraph = Held<st_graph, st_graph_destroy>;
using HeldModel = Held<st_model, st_model_destroy>;
using HeldData = Held<st_data, st_data_destroy>;
using HeldRecipe = Held<st_recipe, st_recipe_destroy>;
using HeldTrainer = Held<st_trainer, st_trainer_destroy>;
using HeldPredictor = Held<st_predictor, st_predictor_destroy>;
using HeldTensor = Held<st_tensor, st_tensor_destroy>;
using HeldPending = Held<st_pending, st_pending_destroy>;
using HeldGemm = Held<st_gemm, st_gemm_plan_destroy>;
using HeldPacked = Held<st_packed, st_packed_destroy>;
using HeldSchedule = Held<st_schedule, st_schedule_destroy>;
using HeldLossScaler = Held<st_loss_scaler, st_loss_scaler_destroy>;
using HeldOptimizer = Held<st_optimizer, st_optimizer_destroy>;
using HeldAccumulator = Held<st_accumulator, st_accumulator_destroy>;
using HeldCheckpoint = Held<st_checkpoint, st_checkpoint_destroy>;
using HeldCommunicator = Held<st_communicator, st_communicator_destroy>;
using HeldSampler = Held<st_distributed_sampler, st_distributed_sampler_destroy>;
using HeldDataParallel = Held<st_data_parallel, st_data_parallel_destroy>;
using HeldPipeline = Held<st_pipeline, st_pipeline_destroy>;
using HeldPlan = Held<st_plan, st_plan_destroy>;
using HeldShardedOptimizer = Held<st_sharded_optimizer, st_sharded_optimizer_destroy>;

/// EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_call(...), {"matmul", "[3, 4]"})): the status, and a message with all these words.
inline testing::AssertionResult fails(st_status wanted, st_status got, std::initializer_list<std::string_view> words = {}) {
  const std::string message = st_last_error();
  if (got != wanted) return testing::AssertionFailure() << "status is " << got << ", wanted " << wanted << ": " << message;
  for (const std::string_view word : words)
    if (message.find(word) == std::string::npos) return testing::AssertionFailure() << "no \"" << word << "\" in: " << message;
  if (message.empty()) return testing::AssertionFailure() << "the message is empty";
  return testing::AssertionSuccess();
}

/// The check of a call that must succeed.
inline testing::AssertionResult works(st_status got) {
  if (got == ST_OK) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "status " << got << ": " << st_last_error();
}

/// The handle that `create` returns for these arguments: hold<HeldContext>(st_context_create, nullptr).
template <class Holder, class Create, class... Arguments>
Holder hold(Create create, const Arguments&... arguments) {
  Holder holder;
  EXPECT_TRUE(works(create(arguments..., holder.out())));
  return holder;
}

/// The value that a call writes to its last argument: asked<int64_t>(st_data_rows, data).
template <class Value, class Call, class... Arguments>
Value asked(Call call, const Arguments&... arguments) {
  Value value{};
  EXPECT_TRUE(works(call(arguments..., &value)));
  return value;
}

/// The same for a call that returns a text, which is copied: text_of(st_trainer_digest, trainer).
template <class Call, class... Arguments>
std::string text_of(Call call, const Arguments&... arguments) {
  const auto* const text = asked<const char*>(call, arguments...);
  return text == nullptr ? "" : text;
}

/// A struct filled by its _init function.
template <class Struct>
Struct filled(st_status (*init)(Struct*, size_t)) {
  Struct made;
  EXPECT_TRUE(works(init(&made, sizeof made)));
  return made;
}

/// A struct filled by its _init function and then by a call: filled(st_value_info_init, st_graph_value, graph, x).
template <class Struct, class Call, class... Arguments>
Struct filled(st_status (*init)(Struct*, size_t), Call call, const Arguments&... arguments) {
  auto made = filled(init);
  EXPECT_TRUE(works(call(arguments..., &made)));
  return made;
}

inline st_memory_stats memory_of(st_context* context) { return filled(st_memory_stats_init, st_context_memory, context); }

/// The last error of this thread.
inline st_error_info last_error() { return filled(st_error_info_init, st_last_error_info); }

}  // namespace st::test
