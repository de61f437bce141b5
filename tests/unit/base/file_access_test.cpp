#include "base/os/file_access.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <string>
#include <thread>

#include "folder_test.h"
#include "thrown_error.h"

namespace st::os {
namespace {

namespace fs = std::filesystem;

class FileAccess : public FolderTest {};

std::span<const std::byte> bytes_of_text(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

/// Runs call(), which must throw `code` with path and reason in its message, and the path as data.
template <class Call>
void expect_refused(Code code, const std::string& path, const std::string& reason, const Call& call) {
  const Error error = error_of(call);
  EXPECT_TRUE(is_error(error, code, {path, reason}));
  EXPECT_EQ(error.place.file, path);
}

TEST_F(FileAccess, WritesAndReadsAtAnyOffset) {
  {
    OutputFile file(path("a"), OutputFile::Open::fresh);
    file.write_at(4, bytes_of_text("efgh"));
    file.write_at(0, bytes_of_text("abcd"));
    file.start_writeback(0, 8);
    file.finish_writeback(0, 8);
    file.sync();
    file.close();
  }
  EXPECT_EQ(content_of("a"), "abcdefgh");
  const InputFile file(path("a"));
  EXPECT_EQ(file.size(), 8);
  std::array<char, 3> word{};
  file.read_at(3, std::as_writable_bytes(std::span(word)));
  EXPECT_EQ(std::string(word.data(), 3), "def");
}

TEST_F(FileAccess, SharesAFileBetweenWriters) {
  {
    OutputFile one(path("a"), OutputFile::Open::shared), two(path("a"), OutputFile::Open::shared);
    std::thread other([&] { two.write_at(2, bytes_of_text("cd")); });
    one.write_at(0, bytes_of_text("ab"));
    other.join();
  }
  EXPECT_EQ(content_of("a"), "abcd");
}

TEST_F(FileAccess, MakesAFreshFileOnlyWhereNoneIs) {
  put("a", "precious");
  expect_refused(Code::io, path("a"), "File exists", [&] { OutputFile(path("a"), OutputFile::Open::fresh); });
  EXPECT_EQ(content_of("a"), "precious");
}

TEST_F(FileAccess, SharesAFileAndNoPipeOrLink) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);  // without a reader: must not wait for ever
  expect_refused(Code::io, path("pipe"), "expected a file, found a pipe", [&] { OutputFile(path("pipe"), OutputFile::Open::shared); });
  const int reader = ::open(path("pipe").c_str(), O_RDONLY | O_NONBLOCK);  // with a reader it can be opened
  expect_refused(Code::io, path("pipe"), "found a pipe", [&] { OutputFile(path("pipe"), OutputFile::Open::shared); });
  ::close(reader);
  ASSERT_EQ(symlink(path("elsewhere").c_str(), path("link").c_str()), 0);
  expect_refused(Code::io, path("link"), "found a broken link to ", [&] { OutputFile(path("link"), OutputFile::Open::shared); });
  EXPECT_FALSE(std::filesystem::exists(path("elsewhere")));
}

TEST_F(FileAccess, SaysThatAFolderWentWhileItWasWrittenTo) {
  expect_refused(Code::io, path("gone/a"), "No such file", [&] { OutputFile(path("gone/a"), OutputFile::Open::shared); });
  expect_refused(Code::io, path("gone"), "No such file", [&] { sync_folder(path("gone")); });
  expect_refused(Code::io, path("gone/b"), "No such file", [&] { rename_file(path("gone/a"), path("gone/b")); });
  expect_refused(Code::io, path("gone/b"), "No such file", [&] { make_folder(path("gone/b")); });
}

TEST_F(FileAccess, SaysWhatCannotBeRead) {
  expect_refused(Code::not_found, path("none"), "No such file", [&] { InputFile file(path("none")); });
  expect_refused(Code::io, path(""), "found a folder", [&] { InputFile file(path("")); });
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  expect_refused(Code::io, path("pipe"), "found a pipe", [&] { InputFile file(path("pipe")); });  // and does not wait for a writer
  put("a", "abcd");
  std::array<std::byte, 3> out{};
  const InputFile file(path("a"));
  expect_refused(Code::corrupt, path("a"), "ends", [&] { file.read_at(2, out); });
  fs::resize_file(path("a"), 1);
  expect_refused(Code::corrupt, path("a"), "ends", [&] { file.read_at(0, out); });  // truncated while it was open
}

TEST_F(FileAccess, NamesAnObjectOfTheWrongKind) {
  const auto is = [&](const char* name, PathKind belongs) { return wrong_kind_at(path(name), belongs); };
  put("file", "");
  fs::create_directory(path("folder"));
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  fs::create_symlink("folder", path("to_folder"));
  fs::create_symlink("file", path("to_file"));
  fs::create_symlink("nothing", path("to_nothing"));
  EXPECT_EQ(is("file", PathKind::file) + is("folder", PathKind::folder) + is("to_folder", PathKind::folder) + is("none", PathKind::file),
            "");
  EXPECT_EQ(is("file", PathKind::folder), "a file");
  EXPECT_EQ(is("folder", PathKind::file), "a folder");
  EXPECT_EQ(is("pipe", PathKind::file), "a pipe");
  EXPECT_EQ(wrong_kind_at("/dev/null", PathKind::file), "a device");
  EXPECT_EQ(is("to_file", PathKind::file), "a link to file");
  EXPECT_EQ(is("to_file", PathKind::folder), "a link to file");
  EXPECT_EQ(is("to_nothing", PathKind::folder), "a broken link to nothing");
  expect_refused(Code::invalid_argument, path("pipe"), "expected a folder, found a pipe",
                 [&] { require_kind(path("pipe"), PathKind::folder); });
}

TEST_F(FileAccess, ClosesWhatItOpenedWhenItFails) {
  put("a", "abcd");
  const size_t before = open_files();
  for (int i = 0; i < 3; ++i) {
    EXPECT_THROW(InputFile file(path("")), Error);
    EXPECT_THROW(OutputFile(path("a"), OutputFile::Open::fresh), Error);
    EXPECT_THROW(FileHold::take(path("none"), FileHold::Kind::shared), Error);
    EXPECT_THROW(list_folder(path("a")), Error);
    OutputFile(path("a"), OutputFile::Open::shared);
    InputFile first(path("a"));
    const InputFile second(std::move(first));
    const auto held = FileHold::take(path("a"), FileHold::Kind::shared);
    EXPECT_FALSE(FileHold::take(path("a"), FileHold::Kind::exclusive));
  }
  EXPECT_EQ(open_files(), before);
}

TEST_F(FileAccess, HoldsAFileForReadersOrForOneAlone) {
  put("a", "");
  {
    const auto one = FileHold::take(path("a"), FileHold::Kind::shared), two = FileHold::take(path("a"), FileHold::Kind::shared);
    EXPECT_TRUE(one && two);
    EXPECT_FALSE(FileHold::take(path("a"), FileHold::Kind::exclusive));
  }
  auto alone = FileHold::take(path("a"), FileHold::Kind::exclusive);
  ASSERT_TRUE(alone);
  EXPECT_FALSE(FileHold::take(path("a"), FileHold::Kind::shared));
  const FileHold moved = std::move(*alone);
  alone.reset();
  EXPECT_FALSE(FileHold::take(path("a"), FileHold::Kind::shared));  // held by its new owner
}

TEST_F(FileAccess, HoldsOnlyWhatIsStillThere) {
  put("a", "");
  expect_refused(Code::not_found, path("none"), "No such file", [&] { FileHold::take(path("none"), FileHold::Kind::shared); });
  const auto old = FileHold::take(path("a"), FileHold::Kind::exclusive);
  put("b", "");
  fs::rename(path("b"), path("a"));
  EXPECT_TRUE(FileHold::take(path("a"), FileHold::Kind::exclusive));  // nobody holds the new file of that name
}

/// Forks a child that runs `first` and lives until `call` returns.
template <class First, class Call>
void with_child(const First& first, const Call& call) {
  std::array<int, 2> ready{}, over{};
  ASSERT_TRUE(pipe(ready.data()) == 0 && pipe(over.data()) == 0);
  const pid_t child = fork();
  char word = 0;
  if (child == 0) {
    first();
    close(over[1]);
    _exit(write(ready[1], "x", 1) == 1 && read(over[0], &word, 1) == 0 ? 0 : 1);
  }
  EXPECT_EQ(read(ready[0], &word, 1), 1);
  call();
  for (const int end : {ready[0], ready[1], over[0], over[1]}) close(end);
  int status = 1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(FileAccess, EndsAHoldWhateverAForkedChildDoes) {
  put("a", "");
  auto held = FileHold::take(path("a"), FileHold::Kind::exclusive);
  with_child([&] { held.reset(); },
             [&] { EXPECT_FALSE(FileHold::take(path("a"), FileHold::Kind::exclusive)); });  // the child's copy does not release the hold
  with_child([] {},
             [&] {
               held.reset();
               EXPECT_TRUE(FileHold::take(path("a"), FileHold::Kind::exclusive));  // though the child has the file open
             });
}

TEST_F(FileAccess, ListsAFolderByName) {
  put("b", "");
  put("a/inside", "");
  put("c", "");
  fs::create_symlink("b", folder_ / "link");
  std::string all;
  for (const FolderEntry& entry : list_folder(folder_.string())) all += text(entry.name, static_cast<int>(entry.kind), " ");
  EXPECT_EQ(all, text("a", static_cast<int>(PathKind::folder), " b", static_cast<int>(PathKind::file), " c",
                      static_cast<int>(PathKind::file), " link", static_cast<int>(PathKind::other), " "));
  expect_refused(Code::not_found, path("none"), "No such file", [&] { list_folder(path("none")); });
}

TEST_F(FileAccess, RemovesAFolderAndNothingBehindLinks) {
  put("kept/precious", "x");
  put("old/deep/deeper/file", "");
  fs::create_symlink(folder_ / "kept", folder_ / "old/deep/link");
  fs::create_symlink("nowhere", folder_ / "old/dangling");
  EXPECT_TRUE(remove_folder(path("old")));
  EXPECT_FALSE(fs::exists(folder_ / "old"));
  EXPECT_FALSE(remove_folder(path("old")));
  fs::create_symlink(folder_ / "kept", folder_ / "link");
  EXPECT_THROW(remove_folder(path("link")), Error);
  EXPECT_EQ(content_of("kept/precious"), "x");
}

TEST_F(FileAccess, RemovesAFolderThatAnotherOneRemovesToo) {
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 20; ++i) put(text("old/", i % 3, "/", i), "");
    std::thread other([&] { remove_folder(path("old")); });
    remove_folder(path("old"));
    other.join();
    EXPECT_FALSE(fs::exists(folder_ / "old"));
  }
}

TEST_F(FileAccess, MakesRenamesAndRemoves) {
  EXPECT_TRUE(make_folder(path("new")));
  EXPECT_FALSE(make_folder(path("new")));
  sync_folder(path("new"));
  put("new/a", "1");
  put("new/b", "2");
  rename_file(path("new/a"), path("new/b"));
  EXPECT_EQ(content_of("new/b"), "1");
  EXPECT_TRUE(remove_file(path("new/b")));
  EXPECT_FALSE(remove_file(path("new/b")));
  EXPECT_GT(free_space(folder_.string()), 0);
  EXPECT_LE(free_space(folder_.string()), static_cast<int64_t>(fs::space(folder_).free));
}

}  // namespace
}  // namespace st::os
