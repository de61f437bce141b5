// Files that a user names are opened as by open(), and a failed write is an error, never a signal.
#include "base/os/whole_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>

#include "base/error.h"
#include "base/os/write_signals.h"
#include "thrown_error.h"

namespace st::os {
namespace {

namespace fs = std::filesystem;

class NamedFile : public testing::Test {
 protected:
  NamedFile() : folder_(fs::path(testing::TempDir()) / ("named_file_" + std::to_string(getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~NamedFile() override { fs::remove_all(folder_); }

  std::string at(const std::string& name) const { return (folder_ / name).string(); }
  void put(const std::string& name, const std::string& content) const { std::ofstream(at(name)) << content; }
  std::string content(const std::string& name) const {
    std::ostringstream all;
    all << std::ifstream(at(name)).rdbuf();
    return all.str();
  }
  mode_t mode(const std::string& name) const {
    struct stat status {};
    EXPECT_EQ(stat(at(name).c_str(), &status), 0);
    return status.st_mode & 07777;
  }
  std::ptrdiff_t entries() const { return std::distance(fs::directory_iterator(folder_), fs::directory_iterator()); }

  fs::path folder_;
};

void write(const std::string& path, std::string_view content) {
  write_named_file(path, [&](const auto& bytes) { bytes(std::as_bytes(std::span(content))); });
}

TEST_F(NamedFile, ThatWasThereKeepsItsMode) {
  put("private", "old");
  fs::permissions(at("private"), fs::perms::owner_read | fs::perms::owner_write);
  write(at("private"), "new");
  EXPECT_EQ(content("private"), "new");
  EXPECT_EQ(mode("private"), 0600U);
  const mode_t before = umask(027);
  write(at("fresh"), "new");
  umask(before);
  EXPECT_EQ(mode("fresh"), 0640U);
  EXPECT_EQ(entries(), 2);
}

TEST_F(NamedFile, BehindLinksIsWrittenAndTheLinksStay) {
  fs::create_directory(at("elsewhere"));
  put("elsewhere/file", "old");
  fs::create_symlink("elsewhere/file", at("second"));
  fs::create_symlink(at("second"), at("first"));
  fs::create_symlink("elsewhere/made", at("dangling"));
  write(at("first"), "new");
  write(at("dangling"), "made");
  EXPECT_EQ(content("elsewhere/file"), "new");
  EXPECT_EQ(content("elsewhere/made"), "made");
  for (const char* link : {"first", "second", "dangling"}) EXPECT_TRUE(fs::is_symlink(at(link))) << link;
  fs::create_symlink("circle", at("circle"));
  EXPECT_THROW(write(at("circle"), "new"), Error);
}

TEST_F(NamedFile, MayHaveTheLongestName) {
  const std::string longest(255, 'n'), longer(256, 'n');
  write(at(longest), "new");
  EXPECT_EQ(content(longest), "new");
  EXPECT_THROW(write(at(longer), "new"), Error);
  EXPECT_EQ(entries(), 1);
}

TEST_F(NamedFile, ThatCannotBeWrittenIsNamedByItsError) {
  const std::string missing = at("missing/weights");
  const Error no_folder = error_of([&] { write(missing, "new"); });
  EXPECT_TRUE(is_error(no_folder, Code::not_found, {missing, "there is no folder " + at("missing")}));
  EXPECT_EQ(no_folder.place.file, missing);
  const Error is_folder = error_of([&] { write(folder_.string(), "new"); });
  EXPECT_TRUE(is_error(is_folder, Code::io, {folder_.string()}));
  EXPECT_EQ(is_folder.place.file, folder_.string());
  const Error is_device = error_of([] { write_file_atomically("/dev/null", [](const auto&) {}); });
  EXPECT_TRUE(is_error(is_device, Code::invalid_argument, {"write /dev/null", "not a regular file"}));
  EXPECT_EQ(is_device.place.file, "/dev/null");
}

TEST_F(NamedFile, ThatIsAPipeOrADescriptorIsWrittenToDirectly) {
  ASSERT_EQ(mkfifo(at("pipe").c_str(), 0600), 0);
  std::string read;
  std::thread reader([&] { read = content("pipe"); });
  write(at("pipe"), "through");
  reader.join();
  EXPECT_EQ(read, "through");
  EXPECT_TRUE(fs::is_fifo(at("pipe")));

  put("page", "before ");
  const int open_file = open(at("page").c_str(), O_WRONLY);
  fs::create_symlink("/proc/self/fd/" + std::to_string(open_file), at("stdout"));
  write(at("stdout"), "and after");
  close(open_file);
  EXPECT_EQ(content("page"), "before and after");
  EXPECT_TRUE(fs::is_symlink(at("stdout")));
  EXPECT_THROW(write(at("."), "new"), Error);
}

TEST_F(NamedFile, ThatNobodyReadsIsAnErrorAndNoSignal) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  EXPECT_TRUE(is_error(error_of([&] { write("/proc/self/fd/" + std::to_string(ends[1]), "lost"); }), Code::io));
  close(ends[1]);
}

/// How a child limited to 100 bytes per file ends: its exit status, or 128 + the signal.
int end_under_limit(const std::string& path, bool host_blocks) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit small{100, 100};
    setrlimit(RLIMIT_FSIZE, &small);
    sigset_t size_signal;
    sigemptyset(&size_signal);
    sigaddset(&size_signal, SIGXFSZ);
    if (host_blocks) pthread_sigmask(SIG_BLOCK, &size_signal, nullptr);
    const int file = open(path.c_str(), O_WRONLY | O_CREAT, 0600);
    const std::string much(200, 'x');
    ssize_t written = 0;
    int reason = 0;
    {
      const WriteSignalsBlocked blocked;
      written = ::write(file, much.data(), much.size());
      written = ::write(file, much.data(), much.size());
      reason = errno;
    }
    sigset_t pending;
    sigpending(&pending);
    const bool is_left_to_host = sigismember(&pending, SIGXFSZ) == 1;
    _exit(written == -1 && reason == EFBIG && is_left_to_host == host_blocks ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

TEST_F(NamedFile, PastTheLimitOfAFileIsAnErrorAndNoSignal) {
  EXPECT_EQ(end_under_limit(at("limited"), false), 0);
  EXPECT_EQ(end_under_limit(at("limited"), true), 0) << "a signal that the host blocks is left to it";
}

}  // namespace
}  // namespace st::os
