// Every disk call of a save fails, once or from then on: the error is reported, older checkpoints are intact, and saves work again as soon
// as the disk does.
#include <cerrno>
#include <cstring>

#include "failing_disk.h"
#include "fault_run.h"

namespace st {
namespace {

class FailingDisk : public FaultRun {
 protected:
  FailingDisk() { failing_disk_watch(scratch_.c_str(), nullptr); }
  ~FailingDisk() override {
    heal();
    failing_disk_watch(nullptr, nullptr);
  }
  static void heal() { failing_disk_fail(nullptr, "1", 0); }
  static std::string newest(const std::string& steps) { return steps.substr(0, steps.find(' ')); }
};

class FailingCalls : public FailingDisk, public testing::WithParamInterface<const char*> {};

TEST_P(FailingCalls, TellTheErrorKeepWhatIsSavedAndGoOn) {
  CheckpointManager manager = make(2);
  ASSERT_FALSE(save(manager, 1));
  ASSERT_FALSE(save(manager, 2));
  int64_t step = 2;  // the newest step that was reported as saved
  int told = 0;
  for (int n = 1;; ++n) {
    const int64_t next = 2 + n;
    failing_disk_fail(GetParam(), text(n, n % 2 == 0 ? "+" : "").c_str(), n % 3 == 0 ? EIO : ENOSPC);
    const auto error = save(manager, next);
    const auto behind = manager.take_error();
    heal();
    const std::string there = steps();
    ASSERT_FALSE(there.starts_with("problem")) << GetParam() << " " << n << ": " << there;
    if (error) {
      EXPECT_TRUE(is_error(*error, Code::io, {std::strerror(n % 3 == 0 ? EIO : ENOSPC)}));
      EXPECT_FALSE(error->place.file.empty()) << error->message();
      ASSERT_TRUE(newest(there) == std::to_string(step)) << GetParam() << " " << n << ": " << there << " after " << error->message();
    } else {
      step = next;
      ASSERT_TRUE(newest(there) == std::to_string(step)) << GetParam() << " " << n << ": " << there;
    }
    told += error || behind ? 1 : 0;
    if (!error && !behind) break;  // a save makes fewer such calls
    ASSERT_LT(n, 200);
  }
  EXPECT_GE(told, 1) << "a save makes such calls";
  ASSERT_FALSE(save(manager, step + 100));
  EXPECT_EQ(steps(), text(step + 100, " ", step)) << "retention has caught up";
  EXPECT_TRUE(manager.folder().leftovers().empty());
  EXPECT_EQ(manager.folder().latest()->name, text("step-", std::string(5, '0'), step + 100));
}

INSTANTIATE_TEST_SUITE_P(OfTheDisk, FailingCalls, testing::Values("open", "pwrite", "write", "fsync", "rename", "mkdir", "unlink", "rmdir"),
                         [](const auto& call) { return std::string(call.param); });

TEST_F(FailingDisk, StartsNoRunWithoutSayingWhy) {
  for (const char* call : {"open", "mkdir", "pwrite"}) {
    failing_disk_fail(call, "1+", EROFS);
    EXPECT_TRUE(is_error(error_of([&] { make(); }), Code::io, {"Read-only file system"})) << call;
    heal();
    std::filesystem::remove_all(path_);
  }
}

}  // namespace
}  // namespace st
