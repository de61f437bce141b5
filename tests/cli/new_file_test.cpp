// Ranks of a launch look at the same paths while others make and remove files there.
#include "new_file.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

namespace cli {
namespace {

TEST(FileReachedBy, IsThePathWhileOthersMakeAndRemoveTheFile) {
  const std::string path = testing::TempDir() + "new_file_test." + std::to_string(::getpid());
  std::atomic<bool> ends{false};
  std::thread other([&] {
    while (!ends) {
      std::ofstream(path).put('x');
      std::filesystem::remove(path);
    }
  });
  int wrong = 0;
  for (int i = 0; i < 20'000; ++i) wrong += file_reached_by(path) != path ? 1 : 0;
  ends = true;
  other.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace cli
