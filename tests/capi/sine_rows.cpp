#include "sine_rows.h"

#include <chrono>
#include <cmath>
#include <thread>

namespace st::test {

namespace {

const int64_t kOne[] = {1};

}  // namespace

const st_field kSineFields[2] = {{"x", ST_F32, 1, kOne}, {"y", ST_F32, 1, kOne}};

SineRows::SineRows() {
  for (int64_t i = 0; i < kSineRows; ++i) {
    x.push_back(0.7F * static_cast<float>(i) - 3.0F);
    y.push_back(std::sin(x.back()));
  }
  views[0] = {"x", {ST_F32, 2, dims, nullptr, x.data(), kSineRows * 4}};
  views[1] = {"y", {ST_F32, 2, dims, nullptr, y.data(), kSineRows * 4}};
}

st_status SineFill::open(st_context* context, st_data** data, int64_t rows) {
  const st_fill_fn call = [](void* user, int64_t k, const int64_t* ids, int64_t n, const st_view* views) {
    return static_cast<SineFill*>(user)->fill(k, ids, n, views);
  };
  const st_release_fn release = [](void* user) {
    auto* self = static_cast<SineFill*>(user);
    const std::lock_guard lock(self->mutex_);
    ++self->released_;
  };
  return st_data_callback(context, rows, 2, kSineFields, call, release, this, data);
}

st_status SineFill::fill(int64_t k, const int64_t* ids, int64_t n, const st_view* views) {
  int64_t call = 0;
  {
    const std::lock_guard lock(mutex_);
    call = calls_++;
    asked_.insert(asked_.end(), ids, ids + k);
  }
  if (before_) {
    if (const st_status status = before_(call); status != ST_OK) return status;
  }
  if (n != 2 || k < 1) return ST_INTERNAL;
  for (int i = 0; i < 2; ++i) {
    const st_view& v = views[i];
    if (v.dtype != ST_F32 || v.rank != 2 || v.dims[0] != k || v.dims[1] != 1 || v.strides != nullptr || v.bytes != k * 4 || v.device != 0)
      return ST_INTERNAL;
    const auto& from = i == 0 ? rows_.x : rows_.y;
    for (int64_t row = 0; row < k; ++row) static_cast<float*>(v.data)[row] = from[static_cast<size_t>(ids[row])];
  }
  return ST_OK;
}

std::vector<int64_t> SineFill::asked() const {
  const std::lock_guard lock(mutex_);
  return asked_;
}

int64_t SineFill::calls() const {
  const std::lock_guard lock(mutex_);
  return calls_;
}

int64_t SineFill::released() const {
  const std::lock_guard lock(mutex_);
  return released_;
}

SineTrainer::SineTrainer(st_context* context, st_data* data, const char* recipe_json) {
  EXPECT_TRUE(works(st_graph_create(context, graph.out())));
  sine_graph(graph);
  EXPECT_TRUE(works(st_model_create(graph, 1, model.out())));
  EXPECT_TRUE(works(st_recipe_create(recipe_json, recipe.out())));
  created = st_trainer_create(model, recipe, data, trainer.out());
}

std::string SineTrainer::digest() const { return text_of(st_trainer_digest, trainer); }

std::string undisturbed_digest(st_context* context, int64_t steps) {
  SineFill plain;
  HeldData made;
  EXPECT_TRUE(works(plain.open(context, made.out())));
  SineTrainer run(context, made);
  for (int64_t i = 0; i < steps; ++i) EXPECT_TRUE(works(run.step()));
  return run.digest();
}

bool comes_true(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return true;
}

}  // namespace st::test
