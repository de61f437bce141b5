// Ranks of a launch look at the same paths, and write into the same folder, while others make and remove files there.
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

TEST(NewFile, SeveralAreWrittenInOneFolderAtTheSameTime) {
  const std::string folder = testing::TempDir() + "new_file_folder." + std::to_string(::getpid());
  std::filesystem::create_directory(folder);
  std::ofstream(folder + "/.scaletrain-" + std::to_string(::getpid()) + "-1") << "of a process that was killed, of another machine";
  const auto contents = [&](const char* name) {
    std::string content;
    std::ifstream(folder + "/" + name) >> content;
    return content;
  };
  {
    NewFile first(folder + "/first"), second(folder + "/second"), third(folder + "/third");
    first.add("a");
    second.add("b");
    third.add("c");
    second.finish();
    first.finish();
  }
  EXPECT_EQ(contents("first"), "a");
  EXPECT_EQ(contents("second"), "b");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 3);  // and that of the other process
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace cli
