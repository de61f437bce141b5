#include "base/os/cpu.h"
#include "base/os/files.h"
#include "base/os/machine.h"
#include "base/os/pages.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/os/cgroup.h"
#include "base/os/whole_file.h"
#include "folder_test.h"
#include "thrown_error.h"

namespace st::os {
namespace {

namespace fs = std::filesystem;

class Os : public FolderTest {
 protected:
  size_t files() const { return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), {})); }
};

std::span<const std::byte> bytes_of_text(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

TEST(Cpu, HasTheCacheSizesOfTheKernel) {
  int found = 0;
  for (int index = 0; index < 8; ++index) {
    const fs::path folder = text("/sys/devices/system/cpu/cpu0/cache/index", index);
    std::string type, size;
    int level = 0;
    std::ifstream(folder / "type") >> type;
    std::ifstream(folder / "size") >> size;
    std::ifstream(folder / "level") >> level;
    if (type == "Instruction" || level < 1 || level > 3 || !size.ends_with("K")) continue;
    EXPECT_EQ((std::array{cpu().l1_bytes, cpu().l2_bytes, cpu().l3_bytes}[static_cast<size_t>(level - 1)]), whole_number(size, 0) << 10)
        << folder;
    ++found;
  }
  if (found == 0) GTEST_SKIP() << "sysfs has no cache";
}

TEST_F(Os, CountsTheCoresOfTheAffinityMask) {
  EXPECT_GE(available_cores(), 1);
  EXPECT_LE(available_cores(), static_cast<int>(std::thread::hardware_concurrency()));
  int narrowed = 0;
  std::thread([&] {
    cpu_set_t all, one;
    sched_getaffinity(0, sizeof all, &all);
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++i)
      if (CPU_ISSET(i, &all)) CPU_SET(i, &one);
    sched_setaffinity(0, sizeof one, &one);
    narrowed = available_cores();
  }).join();
  EXPECT_EQ(narrowed, 1);
}

TEST_F(Os, KnowsItsMemory) {
  const int64_t before = resident_memory();
  EXPECT_GT(before, 0);
  EXPECT_GT(available_memory(), 0);
  const Pages pages(int64_t{64} << 20);
  std::memset(pages.data(), 1, static_cast<size_t>(pages.size()));
  EXPECT_GE(resident_memory() - before, int64_t{60} << 20);
}

TEST_F(Os, ReadsTheQuotaOfCgroup2AndOfItsParents) {
  put("proc/self/cgroup", "0::/job/step\n");
  put("proc/self/mountinfo",
      "22 1 0:20 / /proc rw - proc proc rw\n30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n");
  put("sys/fs/cgroup/job/step/cpu.max", "max 100000\n");
  put("sys/fs/cgroup/job/cpu.max", "250000 100000\n");
  put("sys/fs/cgroup/job/step/memory.max", "max\n");
  put("sys/fs/cgroup/job/memory.max", "1000000\n");
  put("sys/fs/cgroup/job/memory.current", "600000\n");
  put("sys/fs/cgroup/job/memory.stat", "anon 1\ninactive_file 100000\nslab 7\n");
  const CgroupLimits limits = cgroup_limits(folder_.string());
  EXPECT_DOUBLE_EQ(limits.cores, 2.5);
  EXPECT_EQ(limits.memory_free, 500000);
  EXPECT_EQ(limits.memory, 1000000);
}

TEST_F(Os, ReadsTheQuotaOfCgroup1InsideAContainer) {
  put("proc/self/cgroup", "7:memory:/docker/abc\n4:cpuacct,cpu:/docker/abc\n1:name=systemd:/docker/abc\n");
  put("proc/self/mountinfo",
      "40 30 0:31 /docker/abc /sys/fs/cgroup/cpu ro master:11 - cgroup cgroup rw,cpu,cpuacct\n"
      "41 30 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
  put("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "150000\n");
  put("sys/fs/cgroup/cpu/cpu.cfs_period_us", "50000\n");
  put("sys/fs/cgroup/memory/memory.limit_in_bytes", "4096\n");
  put("sys/fs/cgroup/memory/memory.usage_in_bytes", "8192\n");
  const CgroupLimits limits = cgroup_limits(folder_.string());
  EXPECT_DOUBLE_EQ(limits.cores, 3.0);
  EXPECT_EQ(limits.memory_free, 0);
}

TEST_F(Os, CountsThePageCacheOfTheGroupsBelowAsFree) {
  put("proc/self/cgroup", "3:memory:/\n");
  put("proc/self/mountinfo", "41 30 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  put("sys/fs/cgroup/memory/memory.limit_in_bytes", "10000\n");
  put("sys/fs/cgroup/memory/memory.usage_in_bytes", "9000\n");
  put("sys/fs/cgroup/memory/memory.stat", "inactive_file 1\nactive_file 2\ntotal_rss 7\ntotal_inactive_file 3000\ntotal_active_file 500\n");
  EXPECT_EQ(cgroup_limits(folder_.string()).memory_free, 4500);
}

TEST_F(Os, TakesNoLimitForNone) {
  EXPECT_EQ(cgroup_limits(folder_.string()).cores, 0);
  put("proc/self/cgroup", "4:cpu:/\n3:memory:/\n");
  put("proc/self/mountinfo",
      "40 30 0:31 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n41 30 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  put("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  put("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  const CgroupLimits limits = cgroup_limits(folder_.string());
  EXPECT_EQ(limits.cores, 0);
  EXPECT_EQ(limits.memory_free, -1);
  EXPECT_EQ(limits.memory, -1);
}

// The default number of threads of a context.
TEST_F(Os, LowersTheCoresToTheQuotaRoundedUp) {
  const int all = available_cores_under(folder_.string());  // an empty folder: no groups, the mask alone
  EXPECT_GE(all, available_cores());
  put("proc/self/cgroup", "0::/job\n");
  put("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  const auto cores_of = [&](const std::string& quota) {
    put("sys/fs/cgroup/job/cpu.max", quota + " 100000\n");
    return available_cores_under(folder_.string());
  };
  EXPECT_EQ(cores_of("100000"), 1);
  EXPECT_EQ(cores_of("20000"), 1) << "a fifth of a core is still a thread";
  EXPECT_EQ(cores_of("150000"), std::min(all, 2));
  EXPECT_EQ(cores_of("100000000"), all) << "a quota gives no cores that the mask denies";
  EXPECT_EQ(cores_of("max"), all);
}

TEST_F(Os, NamesTheProcessorAsTheKernelDoes) {
  const CpuIdentity& identity = cpu();
  std::string flags, vendor;
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (flags.empty() && line.starts_with("flags")) flags = line + " ";
    if (vendor.empty() && line.starts_with("vendor_id")) vendor = line.substr(line.find(':') + 2);
  }
  if (flags.empty()) GTEST_SKIP() << "no flags in /proc/cpuinfo";
  const auto has = [&](const std::string& flag) { return flags.find(" " + flag + " ") != std::string::npos; };
  EXPECT_EQ(identity.vendor, vendor);
  EXPECT_EQ(identity.avx2_fma, has("avx2") && has("fma") && has("avx"));
  EXPECT_EQ(identity.avx512, has("avx512f") && has("avx512bw") && has("avx512dq") && has("avx512vl"));
  EXPECT_EQ(identity.avx512_bf16, identity.avx512 && has("avx512_bf16"));
  EXPECT_EQ(identity.amx_bf16, identity.avx512 && has("amx_bf16") && has("amx_tile"));
}

TEST_F(Os, ReportsTheKindOfAPath) {
  const std::string file = put("file", "x");
  fs::create_symlink(file, path("link"));
  fs::create_symlink(path("nothing"), path("dangling"));
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(kind_of(file), PathKind::file);
  EXPECT_EQ(kind_of(path("link")), PathKind::file);
  EXPECT_EQ(kind_of(path("")), PathKind::folder);
  EXPECT_EQ(kind_of(path("pipe")), PathKind::other);
  for (const char* name : {"nothing", "dangling", "file/below"}) EXPECT_EQ(kind_of(path(name)), PathKind::none) << name;
  EXPECT_THROW(kind_of(path(std::string(5000, 'a'))), Error);  // a name too long for any file system
}

TEST_F(Os, ListsTheFilesBelowAFolder) {
  put("b/c/deep", "");
  put("b/last", "");
  put("a", "");
  put("left_out/inside", "");
  put("other_folder/file", "");
  fs::create_symlink(path("a"), path("link"));
  fs::create_symlink(path("other_folder"), path("linked_folder"));
  fs::create_symlink(path("nothing"), path("dangling"));
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  const auto takes = [](std::string_view name, bool is_folder) { return !(is_folder && name == "left_out"); };
  const std::vector<std::string> wanted = {"a", "b/c/deep", "b/last", "link", "other_folder/file"};
  EXPECT_EQ(files_below(path(""), takes), wanted);
  EXPECT_EQ(files_below(path("b"), takes), (std::vector<std::string>{"c/deep", "last"}));
  EXPECT_TRUE(is_error(error_of([&] { files_below(path("nothing"), takes); }), Code::not_found, {"nothing"}));
}

TEST_F(Os, ReadsAShortFileOrNothing) {
  EXPECT_EQ(short_file(put("short", "max 100000\n")), "max 100000\n");
  const std::string longer(10'000, 'x');
  EXPECT_EQ(short_file(put("longer", longer)), longer);
  EXPECT_EQ(short_file(path("nothing")), "");
  EXPECT_EQ(short_file(path("")), "") << "a folder";
}

TEST_F(Os, MapsAWholeFile) {
  const std::string file = put("a", "hello");
  MappedFile mapped(file);
  MappedFile moved(std::move(mapped));
  ASSERT_EQ(moved.bytes().size(), 5U);
  EXPECT_EQ(std::memcmp(moved.bytes().data(), "hello", 5), 0);
  EXPECT_TRUE(MappedFile(put("empty", "")).bytes().empty());
}

TEST_F(Os, SaysWhichFileCannotBeMapped) {
  const Error missing = error_of([&] { const MappedFile mapped(path("missing")); });
  EXPECT_TRUE(is_error(missing, Code::not_found, {path("missing")}));
  EXPECT_EQ(missing.place.file, path("missing"));
  EXPECT_TRUE(is_error(error_of([&] { const MappedFile mapped(folder_.string()); }), Code::io));
}

TEST_F(Os, GivesZeroedPagesAndSaysWhatThereIsWhenItCannot) {
  Pages pages(100000);
  EXPECT_TRUE(std::all_of(pages.data(), pages.data() + pages.size(), [](std::byte byte) { return byte == std::byte{0}; }));
  Pages taken(std::move(pages));
  EXPECT_EQ(pages.data(), nullptr);
  EXPECT_EQ(taken.size(), 100000);
  taken = Pages();
  EXPECT_EQ(Pages(0).data(), nullptr);
  EXPECT_TRUE(is_error(error_of([] { const Pages many(int64_t{1} << 46); }), Code::out_of_memory, {"64.00 TiB", "requested", "available"}));
}

TEST_F(Os, ReplacesAFileAsAWhole) {
  const std::string file = put("state", "old");
  write_file_atomically(file, [](const auto& write) {
    write(bytes_of_text("ne"));
    write(bytes_of_text("w"));
  });
  EXPECT_EQ(content_of("state"), "new");
  EXPECT_EQ(files(), 1U);
}

TEST_F(Os, KeepsTheOldFileWhenWritingFails) {
  const std::string file = put("state", "old");
  EXPECT_THROW(write_file_atomically(file,
                                     [](const auto& write) {
                                       write(bytes_of_text("half"));
                                       throw std::runtime_error("the writer gave up");
                                     }),
               std::runtime_error);
  EXPECT_EQ(content_of("state"), "old");
  EXPECT_EQ(files(), 1U) << "the temporary file was left";
  EXPECT_THROW(write_file_atomically(path("missing/state"), [](const auto&) {}), Error);
}

TEST_F(Os, PutsNoFileInThePlaceOfADeviceOrAFolder) {
  const std::string pipe = path("pipe"), folder = path("folder");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::filesystem::create_directory(folder);
  std::filesystem::create_symlink("/dev/full", path("link"));
  for (const std::string& target : {pipe, folder, path("link")}) {
    EXPECT_THROW(write_file_atomically(target, [](const auto& write) { write(bytes_of_text("new")); }), Error) << target;
    EXPECT_FALSE(std::filesystem::is_regular_file(target)) << target;
  }
}

TEST_F(Os, SaysWhereWritingStopped) {
  // A limit on file sizes replaces a full disk: the same failed write without filling one.
  const std::string file = put("state", "old");
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{1000, before.rlim_max};
  const auto ignored = std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  const Error error = error_of([&] {
    const std::string much(4096, 'x');
    write_file_atomically(file, [&](const auto& write) { write(bytes_of_text(much)); });
  });
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, ignored);
  EXPECT_EQ(error.code(), Code::io);
  EXPECT_EQ(error.place.file, file);
  EXPECT_EQ(error.place.offset, 1000);
  EXPECT_EQ(content_of("state"), "old");
  EXPECT_EQ(files(), 1U);
}

}  // namespace
}  // namespace st::os
