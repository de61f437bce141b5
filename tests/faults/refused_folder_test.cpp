// Folders that cannot be written: full, read-only, forbidden, removed during a save, in use by another process, being read.
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <span>
#include <string>

#include "base/os/machine.h"
#include "fault_run.h"

namespace st {
namespace {

namespace fs = std::filesystem;

class RefusedFolder : public FaultRun {
 protected:
  /// Called in a child: mounts a file system at path_, which ends with the child. Returns "" or why not.
  std::string mount_here(const char* options) const {
    fs::create_directories(path_);
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("none", path_.c_str(), "tmpfs", 0, options) != 0)
      return text("skipped: no file system can be mounted here: ", os::reason_of(errno));
    return {};
  }
  std::string remount(unsigned long flags) const {
    return mount("none", path_.c_str(), nullptr, MS_REMOUNT | flags, nullptr) == 0 ? "" : "remount: " + os::reason_of(errno);
  }
  /// "" if that save fails with this reason, the older checkpoints are intact, and no part of it is left.
  std::string refused_save(CheckpointManager& manager, int64_t step, const std::string& reason, const std::string& whole) {
    const auto error = save(manager, step);
    if (!error) return text("step ", step, " was saved");
    if (error->code() != Code::io || error->message().find(reason) == std::string::npos) return error->message();
    if (steps() != whole) return text("there is ", steps(), " after ", error->message());
    return {};
  }
};

#define RETURN_UNLESS_EMPTY(call) \
  if (std::string why = call; !why.empty()) return why

#define EXPECT_FINE(said)                                  \
  {                                                        \
    const std::string what = said;                         \
    if (what.starts_with("skipped")) GTEST_SKIP() << what; \
    EXPECT_EQ(what, "");                                   \
  }

TEST_F(RefusedFolder, AFullDiskKeepsTheOlderOnesUntilThereIsRoomAgain) {
  EXPECT_FINE(in_child([&]() -> std::string {
    RETURN_UNLESS_EMPTY(mount_here("size=1500k"));  // room for three checkpoints of 400 kB, not for a fourth
    CheckpointManager manager(path_, keep_last(3), std::make_shared<MemorySource>(), {});
    for (const int64_t step : {1, 2, 3})
      if (const auto error = save(manager, step)) return error->message();
    for (const int64_t step : {4, 5}) {
      RETURN_UNLESS_EMPTY(refused_save(manager, step, "No space left on device", "3 2 1"));
      if (!manager.folder().leftovers().empty()) return "a part of it was left";
    }
    fs::remove_all(path_ + "/step-00000001");  // as a user would
    if (const auto error = save(manager, 6)) return error->message();
    return steps() == "6 3 2" ? "" : steps();
  }));
}

TEST_F(RefusedFolder, AReadOnlyOneIsReadAndNotSavedTo) {
  EXPECT_FINE(in_child([&]() -> std::string {
    RETURN_UNLESS_EMPTY(mount_here("size=8m"));
    {
      CheckpointManager manager = make();
      if (const auto error = save(manager, 1)) return error->message();
    }
    RETURN_UNLESS_EMPTY(remount(MS_RDONLY));
    if (const auto refused = is_error(error_of([&] { make(); }), Code::io, {"Read-only file system"}); !refused) return refused.message();
    if (steps() != "1") return steps();
    RETURN_UNLESS_EMPTY(remount(0));
    CheckpointManager manager = make();
    if (const auto error = save(manager, 2)) return error->message();
    return steps() == "2 1" ? "" : steps();
  }));
}

TEST_F(RefusedFolder, APermissionThatIsTakenAwayIsToldAndMayComeBack) {
  constexpr uid_t kNobody = 65534;
  if (geteuid() != 0) GTEST_SKIP() << "skipped: only root can be somebody else";
  fs::create_directories(path_);
  ASSERT_EQ(chown(path_.c_str(), kNobody, kNobody), 0);
  EXPECT_FINE(in_child([&]() -> std::string {
    if (chdir(scratch_.c_str()) != 0 || setgid(kNobody) != 0 || setuid(kNobody) != 0) return "skipped: " + os::reason_of(errno);
    path_ = "run";  // the parent folders may be accessible to root only
    CheckpointManager manager = make();
    if (const auto error = save(manager, 1)) return error->message();
    chmod("run", 0555);
    RETURN_UNLESS_EMPTY(refused_save(manager, 2, "Permission denied", "1"));
    chmod("run", 0);
    if (const auto error = save(manager, 3); !error || error->code() != Code::io) return "saved where nothing is allowed";
    chmod("run", 0755);
    if (const auto error = save(manager, 4)) return error->message();
    return steps() == "4 1" ? "" : steps();
  }));
}

TEST_F(RefusedFolder, OneThatIsRemovedWhileItIsWrittenIsMadeAnew) {
  CheckpointManager manager = make();
  ASSERT_FALSE(save(manager, 1));
  CheckpointContent content = state_at(2);
  content.tensors[1].copy = [&, copy = content.tensors[1].copy](int64_t first, std::span<std::byte> out) {
    fs::remove_all(path_);  // after the weights' file, in the middle of the next one
    copy(first, out);
  };
  EXPECT_TRUE(is_error(error_of([&] { manager.save_now(content, workers_); }), Code::io));
  EXPECT_FALSE(save(manager, 3));
  EXPECT_EQ(steps(), "3");
  EXPECT_FALSE(manager.take_error());
}

TEST_F(RefusedFolder, OfTwoProcessesOneSavesAndTheOtherIsToldWhich) {
  StayingChild child([&] {
    auto manager = std::make_shared<CheckpointManager>(path_, keep_last(2), std::make_shared<MemorySource>(), Logger());
    save(*manager, 1);
    return manager;
  });
  EXPECT_TRUE(is_error(error_of([&] { make(); }), Code::busy, {text("process ", child.process(), " on ", os::host_name())}));
  EXPECT_EQ(steps(), "1") << "a reader needs no lock";
  child.kill();
  CheckpointManager manager = make();
  EXPECT_FALSE(save(manager, 2));
  EXPECT_EQ(steps(), "2 1");
}

}  // namespace
}  // namespace st
