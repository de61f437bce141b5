// A separate program, since it counts all allocations of the process.
#include "allocation_count.h"
#include "host_arrays.h"
#include "small_run.h"

namespace {

using namespace st::test;

TEST(OptimizerAllocations, NoneInAStepOrAClipAfterTheFirst) {
  const auto context = hold<HeldContext>(st_context_create, nullptr);
  FloatArray w{std::vector<float>(100000, 1)}, v{{1, 2, 3}}, g{std::vector<float>(100000, 0.5F)}, h{{1, 1, 1}};
  const st_named_view parameters[] = {{"w", w.view()}, {"v", v.view()}};
  const st_view gradients[] = {g.view(), h.view()};
  for (const char* json : {R"({"clip": 1})", R"({"optimizer": "adafactor"})", R"({"optimizer": "adamw-8bit", "threads": 2})"}) {
    const auto o = hold<HeldOptimizer>(st_optimizer_create, context, json, 2, parameters);
    auto report = filled(st_optimizer_report_init);
    double norm = 0;
    const auto both = [&] {
      const st_status stepped = st_optimizer_step(o, 2, gradients, &report);
      return stepped == ST_OK ? st_clip_norm(context, 2, gradients, 1, &norm) : stepped;
    };
    std::vector<uint16_t> half(100000);
    const st_view copies[] = {{ST_BF16, 1, w.dims, nullptr, half.data(), 200000}, {}};
    ASSERT_TRUE(works(st_optimizer_keep_copies(o, 2, copies)));
    const int64_t none = st::allocation_count();
    ASSERT_TRUE(works(both()));
    EXPECT_GT(st::allocation_count(), none) << "the first grows lists: the counter counts";
    const int64_t before = st::allocation_count();
    st_status status = ST_OK;
    for (int i = 0; i < 50; ++i) status = status == ST_OK ? both() : status;
    EXPECT_EQ(st::allocation_count(), before) << json;
    EXPECT_TRUE(works(status));
    EXPECT_EQ(report.step, 51);
  }
}

}  // namespace
