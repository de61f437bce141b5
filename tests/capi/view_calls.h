// A run of the sine, an undisturbed one, and a predictor, to which the tests of views pass their views.
#pragma once

#include "small_run.h"

namespace st::test {

class ViewCalls : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(works(st_predictor_create(run.model, nullptr, predictor.out()))); }
  /// The batch's "y" for an "x" of 8 rows or 4.
  st_named_view y(int64_t rows) { return {"y", {ST_F32, 2, rows == 8 ? eight : four, nullptr, run.y.data(), 4 * rows}}; }
  st_status predict(const st_view& x, const st_view& prediction) {
    const st_named_view in = {"x", x}, out = {"prediction", prediction};
    return st_predictor_run(predictor, 1, &in, 1, &out);
  }

  SineRun run, undisturbed;
  HeldPredictor predictor;
  int64_t eight[2] = {8, 1}, four[2] = {4, 1};
  int64_t outputs_count = 0;  // from st_trainer_forward
  const st_named_view* outputs = nullptr;
};

}  // namespace st::test
