// Rows of the sine as a host's data: as arrays, and from a callback that records the requested rows.
#pragma once

#include <functional>
#include <mutex>
#include <vector>

#include "small_run.h"

namespace st::test {

constexpr int64_t kSineRows = 10;

/// x and y = sin x, one row each.
struct SineRows {
  SineRows();
  std::vector<float> x, y;
  int64_t dims[2] = {kSineRows, 1};
  st_named_view views[2];
};

/// The same rows from a callback. It must outlive the data and counts its release.
class SineFill {
 public:
  st_status open(st_context* context, st_data** data, int64_t rows = kSineRows);
  /// All requested row ids so far, in order.
  std::vector<int64_t> asked() const;
  int64_t calls() const;
  int64_t released() const;
  /// Runs in each call before the rows are written; its status is the call's.
  void before(std::function<st_status(int64_t call)> act) { before_ = std::move(act); }

 private:
  st_status fill(int64_t k, const int64_t* ids, int64_t n, const st_view* views);

  SineRows rows_;
  std::function<st_status(int64_t call)> before_;
  mutable std::mutex mutex_;
  std::vector<int64_t> asked_;
  int64_t calls_ = 0, released_ = 0;
};

/// The fields, as a host declares them.
extern const st_field kSineFields[2];

/// Waits for an event on another thread; false after half a minute.
bool comes_true(const std::function<bool()>& condition);

/// A trainer of sine_graph on data, or without data, fed with batches. Deterministic.
struct SineTrainer {
  SineTrainer(st_context* context, st_data* data, const char* recipe_json = R"({"batch": 4, "accumulate": 2, "warmup": 0})");
  st_status step(int64_t n = 0, const st_named_view* batch = nullptr) { return st_trainer_step(trainer, n, batch, nullptr); }
  std::string digest() const;

  HeldGraph graph;
  HeldModel model;
  HeldRecipe recipe;
  HeldTrainer trainer;
  st_status created = ST_OK;  // of st_trainer_create, which refuses data that does not fit the model
};

/// The digest of a SineTrainer after `steps` steps on an undisturbed SineFill.
std::string undisturbed_digest(st_context* context, int64_t steps);

}  // namespace st::test
