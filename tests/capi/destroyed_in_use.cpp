// A handle that is destroyed while a call on it, or on an object made from it, is inside: BUSY, or gone for the next call, never a crash.
// Objects made from it keep it alive. Inside its own callbacks: weights_stream.cpp, host_op.cpp, host_op_graph.cpp.
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
  const HandleCall& destroy = destroy_of(row.kind);
  std::atomic<int64_t> calls{0};
  std::thread caller([&] {
    const auto end = Clock::now() + std::chrono::seconds(60);
    st_status status = ST_OK;
    for (; status != ST_INVALID_HANDLE && Clock::now() < end; ++calls) {
      status = row.call(w, handle);
      EXPECT_NE(status, ST_INTERNAL) << st_last_error();
      // Between slow calls the other thread would hit the gap of a microsecond after many tries alone.
      if (calls % 4 == 3) std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    EXPECT_EQ(status, ST_INVALID_HANDLE) << "after " << calls << " calls";
  });
  while (calls == 0) std::this_thread::yield();
  st_status status = ST_BUSY;
  while (status == ST_BUSY) status = destroy.call(other, handle);
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

}  // namespace
