// The sine's rows as data of the host's: as arrays, and made by a callback that writes down what it was asked for.
#pragma once

#include <functional>
#include <mutex>
#include <vector>

#include "small_run.h"

namespace st::test {

constexpr int64_t kSineRows = 10;

/// x and y = sin x, a row each.
struct SineRows {
  SineRows();
  std::vector<float> x, y;
  int64_t dims[2] = {kSineRows, 1};
  st_named_view views[2];
};

/// The same rows from a callback. It must outlive the data: its release is counted here.
class SineFill {
 public:
  st_status open(st_context* context, st_data** data, int64_t rows = kSineRows);
  /// All row ids asked for so far, in order.
  std::vector<int64_t> asked() const;
  int64_t calls() const;
  int64_t released() const;
  /// Runs in each call before it writes; its status is the call's.
  void before(std::function<st_status(int64_t call)> act) { before_ = std::move(act); }

 private:
  st_status fill(int64_t k, const int64_t* ids, int64_t n, const st_view* views);

  SineRows rows_;
  std::function<st_status(int64_t call)> before_;
  mutable std::mutex mutex_;
  std::vector<int64_t> asked_;
  int64_t calls_ = 0, released_ = 0;
};

/// Its fields, as a host says them.
extern const st_field kSineFields[2];

/// Waits for what another thread is about to do; false after half a minute.
bool comes_true(const std::function<bool()>& condition);

/// A trainer of sine_graph on data; with none it is given its batches. The same each time.
struct SineTrainer {
  SineTrainer(st_context* context, st_data* data, const char* recipe_json = R"({"batch": 4, "accumulate": 2, "warmup": 0})");
  st_status step(int64_t n = 0, const st_named_view* batch = nullptr) { return st_trainer_step(trainer, n, batch, nullptr); }
  std::string digest() const;

  HeldGraph graph;
  HeldModel model;
  HeldRecipe recipe;
  HeldTrainer trainer;
  st_status created = ST_OK;  // of st_trainer_create: data that does not fit the model is refused there
};

/// Of a SineTrainer after so many steps on a SineFill that nothing is done to.
std::string undisturbed_digest(st_context* context, int64_t steps);

}  // namespace st::test
