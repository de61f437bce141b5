// One object in two threads: a call is whole, or Busy. ThreadSanitizer sees what a small window hides.
#include <atomic>
#include <string>
#include <thread>

#include "sine_objects.h"

namespace {

using namespace scaletrain;
using namespace scaletrain::test;

TEST_F(Hpp, TextsOfOneObjectInTwoThreadsAreWholeOrBusy) {
  Sine sine;
  const std::string digest = sine.trainer.digest(), plan = sine.trainer.plan();
  ASSERT_NE(digest, plan);
  std::atomic<int> other{0};
  const auto read = [&](const std::string& wanted, const auto& call) {
    for (int i = 0; i < 2000; ++i) {
      try {
        if (call() != wanted) ++other;
      } catch (const Error& error) {
        if (error.status() != Status::busy) ++other;
      }
    }
  };
  std::thread digests([&] { read(digest, [&] { return sine.trainer.digest(); }); });
  read(plan, [&] { return sine.trainer.plan(); });
  digests.join();
  EXPECT_EQ(other, 0);
}

}  // namespace
