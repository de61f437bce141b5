#include "data/tokens.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "../base/folder_test.h"
#include "refusal.h"

namespace st {
namespace {

namespace fs = std::filesystem;

class Tokens : public FolderTest {};
std::vector<int32_t> all_of(const TokenSource& source) {
  std::vector<int32_t> ids(static_cast<size_t>(source.size()));
  source.read(0, ids);
  return ids;
}

std::string text_of(const TokenSource& source) {
  std::string out;
  for (const int32_t id : all_of(source)) out += static_cast<char>(id);
  return out;
}

Error error_of_opening(const std::string& path) {
  return error_of([&] { const TokenSource source(path); });
}

TEST_F(Tokens, AreTheBytesOfAText) {
  const TokenSource source(put("a.txt", "h\xC3\xA9!\n"));
  EXPECT_EQ(source.vocabulary(), 256);
  EXPECT_EQ(all_of(source), (std::vector<int32_t>{'h', 0xC3, 0xA9, '!', '\n'}));
  std::vector<int32_t> part(2);
  source.read(1, part);
  EXPECT_EQ(part, (std::vector<int32_t>{0xC3, 0xA9}));
}

TEST_F(Tokens, OfAFolderAreItsTextsInPathOrder) {
  put("corpus/b.txt", "bee");
  put("corpus/a/z.py", "zed");
  put("corpus/a.txt", "ay");  // "a.txt" < "a/z.py": '.' comes before '/'
  put("corpus/Z", "big");
  put("corpus/empty", "");
  put("corpus/.hidden", "no");
  put("corpus/.git/config", "no");
  put("corpus/.venv/x.py", "no");
  put("corpus/sub/build/out.txt", "no");
  put("corpus/sub/build.txt", "yes");
  put("corpus/image.png", "\x89PNG\xFF");
  put("corpus/nul", std::string_view("a\0b", 3));
  const TokenSource source(path("corpus"));
  EXPECT_EQ(text_of(source), "big\nay\nzed\nbee\nyes");
  EXPECT_EQ(source.files(), 5);
  EXPECT_EQ(text_of(TokenSource(path("corpus/"))), text_of(source));
}

TEST_F(Tokens, OfAHiddenFolderThatIsNamedAreRead) {
  put(".data/a.txt", "ay");
  EXPECT_EQ(text_of(TokenSource(path(".data"))), "ay");
  put("build/a.txt", "bee");
  EXPECT_EQ(text_of(TokenSource(path("build"))), "bee");
}

TEST_F(Tokens, AreNotFoundWhereThereIsNothing) {
  const Error missing = error_of_opening(path("none"));
  EXPECT_EQ(missing.code(), Code::not_found);
  EXPECT_EQ(missing.place.file, path("none"));
  EXPECT_TRUE(says(error_of_opening(put("empty", "")), "is empty"));
  put("nothing/.hidden", "x");
  put("nothing/bytes", "\xFF");
  EXPECT_TRUE(says(error_of_opening(path("nothing")), "holds no text (1 files"));
  const std::string pipe = path("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_TRUE(says(error_of_opening(pipe), "neither a file nor a folder"));  // and does not wait for a writer
}

TEST_F(Tokens, OfAFileThatIsNotUtf8NameTheByte) {
  const Error error = error_of_opening(put("latin1.txt", "caf\xE9 au lait"));
  EXPECT_EQ(error.code(), Code::invalid_argument);
  EXPECT_EQ(error.place.offset, 3);
  EXPECT_TRUE(says(error, "byte 3 of 12"));
  EXPECT_TRUE(says(error, "latin1.txt"));
}

TEST_F(Tokens, ComeBackFromATokenFile) {
  for (const int64_t vocabulary : {int64_t{50257}, int64_t{65536}, int64_t{65537}, int64_t{200000}}) {
    std::vector<int32_t> ids(20000);
    for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>((i * 7919) % static_cast<size_t>(vocabulary));
    ids.back() = static_cast<int32_t>(vocabulary - 1);
    const std::string file = path("t.bin");
    write_tokens(file, vocabulary, ids);
    const TokenSource source(file);
    EXPECT_EQ(source.vocabulary(), vocabulary);
    EXPECT_EQ(all_of(source), ids);
    EXPECT_EQ(fs::file_size(file), 32 + ids.size() * (vocabulary <= 65536 ? 2 : 4));
  }
}

TEST_F(Tokens, AreWrittenAsDocumented) {
  write_tokens(path("t.bin"), 1000, std::vector<int32_t>{1, 513});
  const std::string_view expected("STTOKENS\1\0\0\0\2\0\0\0\xE8\3\0\0\0\0\0\0\2\0\0\0\0\0\0\0\1\0\1\2", 36);
  EXPECT_EQ(content_of("t.bin"), expected);
}

TEST_F(Tokens, OutsideTheVocabularyAreNotWritten) {
  EXPECT_TRUE(says(error_of([&] { write_tokens(path("t.bin"), 10, std::vector<int32_t>{1, 10}); }), "id 10 at position 1"));
  EXPECT_TRUE(says(error_of([&] { write_tokens(path("t.bin"), 10, std::vector<int32_t>{-1}); }), "id -1 at position 0"));
  EXPECT_THROW(write_tokens(path("t.bin"), 0, std::vector<int32_t>{0}), Error);
  EXPECT_FALSE(fs::exists(path("t.bin")));
}

TEST_F(Tokens, OutsideTheVocabularyAreFoundWhenRead) {
  std::vector<int32_t> ids(100, 5);
  write_tokens(path("t.bin"), 1000, ids);
  std::string content = content_of("t.bin");
  content[32 + 2 * 77] = '\xE8';  // 1000
  content[32 + 2 * 77 + 1] = 3;
  const TokenSource source(put("bad.bin", content));
  std::vector<int32_t> part(77);
  source.read(0, part);
  EXPECT_EQ(part, std::vector<int32_t>(77, 5));
  const Error error = error_of([&] { source.read(70, part = std::vector<int32_t>(20)); });
  EXPECT_EQ(error.code(), Code::corrupt);
  EXPECT_TRUE(says(error, "bad.bin, position 77: id 1000 is outside the vocabulary of 1000"));
  EXPECT_EQ(error.place.offset, 32 + 2 * 77);
}

TEST_F(Tokens, AboveTheRangeOfIdsAreRefused) {
  write_tokens(path("t.bin"), 100000, std::vector<int32_t>{1, 2});
  std::string content = content_of("t.bin");
  content.replace(36, 4, "\xFF\xFF\xFF\xFF");
  const TokenSource source(put("bad.bin", content));
  EXPECT_EQ(error_of([&] { all_of(source); }).code(), Code::corrupt);
}

TEST_F(Tokens, AreOnlyReadWhereTheyAre) {
  const TokenSource source(put("a.txt", "hello"));
  std::vector<int32_t> ids(3);
  EXPECT_THROW(source.read(3, ids), Error);
  EXPECT_THROW(source.read(-1, ids), Error);
  EXPECT_THROW(source.read(INT64_MAX, ids), Error);
}

class Header : public Tokens {
 protected:
  Header() {
    write_tokens(path("good.bin"), 1000, std::vector<int32_t>(10, 3));
    good_ = content_of("good.bin");
  }
  /// The error of the good file with a field replaced.
  Error error_with(size_t at, int size, uint64_t value) const {
    std::string content = good_;
    for (int i = 0; i < size; ++i) content[at + static_cast<size_t>(i)] = static_cast<char>(value >> (8 * i));
    return error_of_opening(put("bad.bin", content));
  }
  std::string good_;
};

TEST_F(Header, OfEveryLengthThatIsWrongIsRefused) {
  for (size_t length = 0; length < good_.size(); ++length) {
    const Error error = error_of_opening(put("cut.bin", std::string_view(good_).substr(0, length)));
    EXPECT_NE(error.code(), Code::ok) << length;
    EXPECT_TRUE(says(error, "cut.bin")) << length;
    EXPECT_EQ(error.code() == Code::corrupt, length >= 8) << length;  // shorter ones are not recognised as token files
  }
  EXPECT_TRUE(says(error_of_opening(put("cut.bin", good_.substr(0, 45))), "declares 10 tokens of 2 bytes, but only 13 bytes follow"));
  EXPECT_TRUE(says(error_of_opening(put("long.bin", good_ + "x")), "1 bytes follow the 10 tokens"));
}

TEST_F(Header, ThatLiesIsRefused) {
  EXPECT_TRUE(says(error_with(8, 4, 2), "version must be 1, got 2"));
  for (const uint64_t width : {0U, 1U, 3U, 8U, 0xFFFFFFFFU})
    EXPECT_TRUE(says(error_with(12, 4, width), "bytes of an id must be 2 (uint16) or 4 (uint32)")) << width;
  for (const uint64_t vocabulary : {uint64_t{0}, uint64_t{1} << 31, ~uint64_t{0}})
    EXPECT_TRUE(says(error_with(16, 8, vocabulary), "vocabulary ")) << vocabulary;
  // Counts whose size in bytes overflows to the right one, or to 0.
  for (const uint64_t count : {uint64_t{11}, (uint64_t{1} << 63) + 10, uint64_t{1} << 63, ~uint64_t{0}})
    EXPECT_TRUE(says(error_with(24, 8, count), "declares ")) << count;
  EXPECT_TRUE(says(error_with(24, 8, 9), "2 bytes follow the 9 tokens"));
  const std::string none = good_.substr(0, 24) + std::string(8, '\0');
  EXPECT_TRUE(says(error_of_opening(put("none.bin", none)), "holds no tokens"));
  EXPECT_EQ(error_with(8, 4, 2).code(), Code::corrupt);
}

TEST_F(Header, IsMissedWhereTheNamePromisesIt) {
  EXPECT_TRUE(says(error_of_opening(put("raw.bin", "0123456789")), "not a token file"));
  EXPECT_EQ(TokenSource(put("named_otherwise", good_)).vocabulary(), 1000);
}

}  // namespace
}  // namespace st
