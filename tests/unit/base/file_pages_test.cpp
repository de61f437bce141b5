#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <span>
#include <string>

#include "base/memory_source.h"
#include "base/os/pages.h"
#include "folder_test.h"
#include "thrown_error.h"

namespace st::os {
namespace {

namespace fs = std::filesystem;

class FilePages : public FolderTest {
 protected:
  std::string refusal_of(const std::function<void()>& call) const {
    const Error error = error_of(call);
    EXPECT_EQ(error.code(), Code::io) << error.message();
    return error.message();
  }
};

std::span<std::byte> bytes_of(const Pages& pages) { return {pages.data(), static_cast<size_t>(pages.size())}; }

TEST_F(FilePages, AreZeroAndHaveNoName) {
  const Pages pages(100'001, folder_);
  EXPECT_TRUE(std::ranges::all_of(bytes_of(pages), [](std::byte b) { return b == std::byte{0}; }));
  std::ranges::fill(bytes_of(pages), std::byte{7});
  EXPECT_EQ(std::accumulate(bytes_of(pages).begin(), bytes_of(pages).end(), int64_t{0},
                            [](int64_t sum, std::byte b) { return sum + std::to_integer<int64_t>(b); }),
            700'007);
  EXPECT_TRUE(fs::is_empty(folder_)) << "whatever becomes of this process, nothing is left behind";
  EXPECT_EQ(Pages(0, folder_).data(), nullptr);
}

TEST_F(FilePages, TakeThePlaceOfMemoryWithItsBytesAndItsAddress) {
  Pages pages(300'000);
  for (size_t i = 0; i < bytes_of(pages).size(); ++i) pages.data()[i] = static_cast<std::byte>(i % 251);
  const std::byte* const before = pages.data();
  pages.move_to_file(folder_);
  EXPECT_EQ(pages.data(), before);
  size_t wrong = 0;
  for (size_t i = 0; i < bytes_of(pages).size(); ++i) wrong += pages.data()[i] == static_cast<std::byte>(i % 251) ? 0 : 1;
  EXPECT_EQ(wrong, 0U);
  pages.data()[299'999] = std::byte{5};
  EXPECT_EQ(pages.data()[299'999], std::byte{5});
}

TEST_F(FilePages, AreRefusedWhereThereIsNoSuchFolder) {
  const std::string missing = path("missing");
  const std::string why = refusal_of([&] { Pages(4096, missing); });
  EXPECT_NE(why.find(missing + ": No such file or directory"), std::string::npos) << why;
  EXPECT_NE(refusal_of([&] { Pages(4096, "/proc/self/status"); }).find("Not a directory"), std::string::npos);
}

// More than this process may write, in which case the system sends a signal instead of an error.
TEST_F(FilePages, AreRefusedUpFrontWithNeedAndWhatIsFree) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 1 << 20;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  Pages pages(2 << 20);
  pages.data()[5] = std::byte{9};
  const std::string made = refusal_of([&] { Pages(2 << 20, folder_); }), moved = refusal_of([&] { pages.move_to_file(folder_); });
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  for (const std::string& why : {made, moved}) {
    EXPECT_NE(why.find("2.00 MiB (2097152 bytes)"), std::string::npos) << why;
    EXPECT_NE(why.find("bytes are free there"), std::string::npos) << why;
  }
  EXPECT_EQ(pages.data()[5], std::byte{9}) << "nothing has changed";
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(FilePages, AreCountedApartFromMemory) {
  const auto source = std::make_shared<MemorySource>();
  const auto uses = [&](MemoryRole role) { return source->account().uses().of[static_cast<size_t>(role)]; };
  {
    Memory moved(1000, source, MemoryRole::parameters);
    const Memory made(500, source, folder_);
    EXPECT_TRUE(made.is_in_file());
    EXPECT_EQ(source->account().bytes(), 1000);
    moved.move_to_file(folder_);
    moved.move_to_file(folder_);  // already in a file
    EXPECT_EQ(source->account().bytes(), 0);
    EXPECT_EQ(uses(MemoryRole::parameters).now, 0);
    EXPECT_EQ(uses(MemoryRole::file).now, 1500);
    EXPECT_THROW(Memory(500, source, path("missing")), Error);
  }
  EXPECT_EQ(uses(MemoryRole::file).now, 0);
  EXPECT_EQ(uses(MemoryRole::file).peak, 1500);
  EXPECT_EQ(source->account().uses().all.peak, 1000);
}

}  // namespace
}  // namespace st::os
