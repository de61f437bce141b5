// One source of rows and several threads: the host's fill is never called concurrently, and each trainer gets its own rows.
#include <atomic>
#include <thread>

#include "sine_rows.h"

namespace {

using namespace st::test;

TEST(DataThreads, TrainersThatShareACallbackTakeTurns) {
  constexpr int kTrainers = 3, kSteps = 20;
  auto options = filled(st_context_options_init);
  options.threads = 1;
  const auto context = hold<HeldContext>(st_context_create, &options);
  SineFill fill;
  std::atomic<int> inside{0}, together{0};
  fill.before([&](int64_t) {
    if (++inside > 1) ++together;
    std::this_thread::yield();
    --inside;
    return st_status{ST_OK};
  });
  HeldData data;
  ASSERT_TRUE(works(fill.open(context, data.out())));
  std::vector<std::string> digests(kTrainers);
  std::vector<std::thread> threads;
  for (int t = 0; t < kTrainers; ++t)
    threads.emplace_back([&, t] {
      SineTrainer run(context, data);
      for (int step = 0; step < kSteps; ++step) EXPECT_TRUE(works(run.step()));
      digests[static_cast<size_t>(t)] = run.digest();
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(together, 0);
  for (const auto& digest : digests) EXPECT_EQ(digest, digests[0]);
}

TEST(DataThreads, DataThatIsDestroyedWhileTrainersDrawFromItIsReleasedByTheLast) {
  const auto context = hold<HeldContext>(st_context_create, nullptr);
  SineFill fill;
  HeldData data;
  ASSERT_TRUE(works(fill.open(context, data.out())));
  std::atomic<int> standing{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&] {
      SineTrainer run(context, data);
      ++standing;
      for (int step = 0; step < 10; ++step) EXPECT_TRUE(works(run.step()));
    });
  while (standing < 2) std::this_thread::yield();
  data.reset();
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(fill.released(), 1);
}

}  // namespace
