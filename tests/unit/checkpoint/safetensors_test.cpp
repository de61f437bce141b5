#include "checkpoint/safetensors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "../base/folder_test.h"
#include "safetensors_bytes.h"
#include "thrown_error.h"

namespace st {
namespace {

using Contents = std::map<std::string, std::string>;  // raw bytes by name

std::vector<TensorRecord> records() {
  return {{"flag", DType::boolean, {3}, 0}, {"weight", DType::f32, {2, 3}, 0}, {"none", DType::f32, {0, 5}, 0},
          {"step", DType::i64, {}, 0},      {"half", DType::bf16, {5}, 0},     {"bias", DType::f32, {1}, 0}};
}

Contents contents() {
  Contents bytes;
  char next = 1;
  for (const TensorRecord& record : records())
    for (int64_t i = 0; i < record.bytes(); ++i) bytes[record.name] += next++;
  return bytes;
}

FillTensor fill_with(const Contents& all) {
  return [&all](const TensorRecord& record, const WriteBytes& write) {
    const auto found = all.find(record.name);
    if (found == all.end()) return;
    for (const char c : found->second) write(std::as_bytes(std::span(&c, 1)));  // byte by byte
  };
}

std::string written(std::vector<TensorRecord> tensors, const Metadata& metadata = {}) {
  std::string out;
  const Contents all = contents();
  write_safetensors([&](std::span<const std::byte> piece) { out.append(reinterpret_cast<const char*>(piece.data()), piece.size()); },
                    std::move(tensors), metadata, fill_with(all));
  return out;
}

struct Scratch {  // a file that is removed when the test ends
  std::string path = testing::TempDir() + "safetensors_" + testing::UnitTest::GetInstance()->current_test_info()->name();
  ~Scratch() { std::filesystem::remove(path); }
  void put(const std::string& bytes) const { std::ofstream(path, std::ios::binary) << bytes; }
};

/// The error for a file of these bytes; empty if it is accepted.
std::string refusal_of(const std::string& bytes) {
  const Scratch scratch;
  scratch.put(bytes);
  const Error error = error_of([&] { const SafetensorsFile file(scratch.path); });
  if (error.code() == Code::ok) return "";
  EXPECT_TRUE(is_error(error, Code::corrupt, {scratch.path}));
  EXPECT_EQ(error.place.file, scratch.path);
  return error.message();
}

TEST(Safetensors, ReadsBackWhatItWrote) {
  const Scratch scratch;
  const Contents all = contents();
  write_safetensors_file(scratch.path, records(), {{"format", "pt"}, {"who \"said\"", "line\nbreak \xC3\xA9"}}, fill_with(all));

  const SafetensorsFile file(scratch.path);
  EXPECT_EQ(file.header().metadata.at("format"), "pt");
  EXPECT_EQ(file.header().metadata.at("who \"said\""), "line\nbreak \xC3\xA9");
  ASSERT_EQ(file.header().tensors.size(), records().size());
  for (const TensorRecord& expected : records()) {
    const TensorRecord& record = file.record(expected.name);
    EXPECT_EQ(record.dtype, expected.dtype) << expected.name;
    EXPECT_EQ(record.shape, expected.shape) << expected.name;
    const auto bytes = file.bytes(record);
    const std::string got(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    EXPECT_EQ(got, expected.shape.elements() == 0 ? "" : all.at(expected.name)) << expected.name;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(bytes.data()) % static_cast<uintptr_t>(bytes_of(record.dtype)), 0U) << expected.name;
  }
}

TEST(Safetensors, WritesTheBytesOfTheFormat) {
  // Written by hand from the format's description; the header is padded so that the data starts at a multiple of 8.
  const std::string json = R"({"__metadata__":{"a":"b"},"bias":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  const std::string file = written({{"bias", DType::f32, {1}, 0}}, {{"a", "b"}});
  const std::string padded = json + std::string((8 - json.size() % 8) % 8, ' ');
  EXPECT_EQ(file, with_length(padded, contents()["bias"]));
}

TEST(Safetensors, IsTheSameFileInAnyOrderOfTensors) {
  auto tensors = records();
  const std::string file = written(tensors);
  std::reverse(tensors.begin(), tensors.end());
  EXPECT_EQ(written(tensors), file);
}

TEST(Safetensors, StreamsThroughSmallReads) {
  const std::string file = written(records(), {{"k", "v"}});
  for (const size_t most : {1, 7, 100000}) {
    SafetensorsStream stream(reader_of(file, most), "a socket");
    EXPECT_EQ(stream.header().metadata.at("k"), "v");
    for (const TensorRecord& record : stream.header().tensors) {
      if (record.name == "half") continue;
      stream.skip_to(record.offset);
      std::string bytes(static_cast<size_t>(record.bytes()), '\0');
      stream.read(std::as_writable_bytes(std::span(bytes)));
      EXPECT_EQ(bytes, contents()[record.name]);
    }
    stream.skip_to(stream.header().data_bytes);
    std::byte more{};
    EXPECT_THROW(stream.read({&more, 1}), Error);
  }
}

TEST(Safetensors, RefusesAFileCutAnywhere) {
  const std::string file = written(records(), {{"k", "v"}});
  for (size_t size = 0; size < file.size(); ++size) {
    const std::string cut = file.substr(0, size);
    EXPECT_NE(refusal_of(cut), "") << size;
    const auto read_all = [&] {
      SafetensorsStream stream(reader_of(cut, 1000), "a socket");
      stream.skip_to(stream.header().data_bytes);
    };
    EXPECT_THROW(read_all(), Error) << size;
  }
  EXPECT_NE(refusal_of(file + "x"), "");
}

TEST(Safetensors, NeverReadsOutsideAFileWithAnyByteChanged) {
  // Not every flip can be detected (a name may change to another name), but reads must stay within the file. The sanitizers watch.
  const std::string file = written(records(), {{"k", "v"}});
  const Scratch scratch;
  int64_t refused = 0;
  const auto try_it = [&](const auto& read) {
    const Code code = error_of(read).code();
    EXPECT_TRUE(code == Code::ok || code == Code::corrupt);
    if (code == Code::corrupt) ++refused;
  };
  for (size_t at = 0; at < file.size(); ++at) {
    for (const int flip : {0x01, 0x10, 0x80, 0xFF}) {
      std::string changed = file;
      changed[at] = static_cast<char>(changed[at] ^ flip);
      try_it([&] {
        SafetensorsStream stream(reader_of(changed, 1000), "a socket");
        stream.skip_to(stream.header().data_bytes);
      });
      if (at % 8 != 0) continue;  // writing a file each time would take too long
      scratch.put(changed);
      try_it([&] {
        const SafetensorsFile taken(scratch.path);
        int64_t sum = 0;
        for (const TensorRecord& record : taken.header().tensors)
          for (const std::byte b : taken.bytes(record)) sum += std::to_integer<int64_t>(b);
        EXPECT_GT(sum, 0);
      });
    }
  }
  EXPECT_GT(refused, 0);
}

TEST(Safetensors, RefusesHostileHeaders) {
  const auto tensor = [](const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return R"({"t":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
  };
  EXPECT_EQ(refusal_of(with_length(tensor("F32", "[2]", "[0,8]"), "12345678")), "");  // each file below differs from this one in one thing

  const std::map<std::string, std::string> hostile = {
      {"unknown dtype", with_length(tensor("F8_E4M9", "[8]", "[0,8]"), "12345678")},
      {"takes 20 bits", with_length(tensor("F4", "[5]", "[0,3]"), "123")},
      {"unexpected text", with_length(tensor("F32", "[2]", "[0,8]") + std::string(1, '\0'), "12345678")},
      {"unexpected text ", with_length(tensor("F32", "[2]", "[0,8]") + "  {}", "12345678")},
      {"got -0", with_length(tensor("F32", "[2]", "[-0,8]"), "12345678")},
      {"expected a value", with_length(R"({"t":{"dtype":"F32","shape":[0],"data_offsets":[0,0],"more":1-2}})")},
      {"do not span", with_length(tensor("F32", "[3]", "[0,8]"), "12345678")},
      {"do not span ", with_length(tensor("F32", "[2]", "[8,0]"), "12345678")},
      {"there is a gap", with_length(tensor("F32", "[2]", "[4,12]"), "123456789012")},
      {"the tensors take", with_length(tensor("F32", "[4]", "[0,16]"), "12345678")},
      {"overflows 64 bits", with_length(tensor("F32", "[4294967296,4294967296]", "[0,8]"), "12345678")},
      {"does not fit 64 bits", with_length(tensor("F32", "[18446744073709551615]", "[0,8]"), "12345678")},
      {"must be 0 or more, got -2", with_length(tensor("F32", "[-2]", "[0,8]"), "12345678")},
      {"whole number", with_length(tensor("F32", "[2.0]", "[0,8]"), "12345678")},
      {"more than 2 data_offsets", with_length(tensor("F32", "[2]", "[0,8,8]"), "12345678")},
      {"two data_offsets", with_length(tensor("F32", "[2]", "[0]"), "12345678")},
      {"whole number ", with_length(tensor("F32", "[[2]]", "[0,8]"), "12345678")},
      {"expected [", with_length(tensor("F32", "{}", "[0,8]"), "12345678")},
      {"expected [ ", with_length(tensor("F32", "null", "[0,8]"), "12345678")},
      {"the text ends, expected {", with_length(R"({"t":)")},
      {"not UTF-8", with_length("{\"t\xFF\":{}}")},
      {"expected {", with_length("{\"t\":" + std::string(100000, '['))},
      {"expected \"", with_length("{\"t\":{\"dtype\":" + std::string(100000, '{'))},
      {"does not start with {", with_length("[]")},
      {"does not start with { ", with_length("")},
      {"needs dtype, shape", with_length(R"({"t":{"dtype":"F32","data_offsets":[0,0]}})")},
      {"the key shape is given twice", with_length(R"({"t":{"dtype":"F32","shape":[0],"shape":[0],"data_offsets":[0,0]}})")},
      {"the key t is given twice",
       with_length(R"({"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"t":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})", "12")},
      {"it overlaps another",
       with_length(R"({"t":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"u":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})", "123")},
      {"expected \" ", with_length(R"({"__metadata__":{"a":1}})")},
      {"the format allows", std::string(7, '\xFF') + "\x7F{}"},
      {"the whole file has", std::string("\x00\x00\x10\x00\x00\x00\x00\x00{}", 10)},
      {"too few", "1234567"},
      {"too few ", ""},
  };
  for (const auto& [reason, bytes] : hostile) {
    const std::string wanted =
        reason.substr(0, reason.find_last_not_of(' ') + 1);  // trailing blanks only make the keys of this table unique
    EXPECT_NE(refusal_of(bytes).find(wanted), std::string::npos) << reason << " | " << refusal_of(bytes);
  }
}

TEST(Safetensors, CountsTensorsOfOtherDtypesAndPassesOverThem) {
  const std::string json =
      R"({"a":{"dtype":"I8","shape":[3],"data_offsets":[0,3]},"w":{"dtype":"F32","shape":[1],"data_offsets":[3,7],"more":{"x":[1,null]}},)"
      R"("b":{"dtype":"F4","shape":[2,2],"data_offsets":[7,9]},"c":{"dtype":"U8","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[9,10]},)"
      R"("__metadata__":null} )";
  const Scratch scratch;
  scratch.put(with_length(json,
                          "abcWXYZ"
                          "de"
                          "f"));
  const SafetensorsFile file(scratch.path);
  ASSERT_EQ(file.header().tensors.size(), 1U);
  const auto bytes = file.bytes(file.record("w"));
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), "WXYZ");
  const std::vector<ForeignTensor>& foreign = file.header().foreign;
  ASSERT_EQ(foreign.size(), 3U);
  EXPECT_EQ(text(foreign[0].name, foreign[1].name, foreign[2].name), "abc");
  EXPECT_EQ(foreign[1].dtype, "F4");
  EXPECT_EQ(foreign[1].bytes, 2);
  EXPECT_EQ(foreign[2].shape.size(), 9U);
  EXPECT_EQ(file.header().data_bytes, 10);
}

TEST(Safetensors, KeysAndMetadataAreWrittenEscapedOnceAndComeBackUnescaped) {
  const std::string odd = "q\"b\\t\tn\n\x01 \xC3\xA9\xF0\x9F\x98\x80";
  const Scratch scratch;
  write_safetensors_file(scratch.path, {{odd, DType::u8, {0}, 0}}, {{odd, odd}}, [](const TensorRecord&, const WriteBytes&) {});
  const SafetensorsFile file(scratch.path);
  EXPECT_EQ(file.header().tensors.at(0).name, odd);
  EXPECT_EQ(file.header().metadata, (Metadata{{odd, odd}}));
  // Escapes of other writers: a surrogate pair is one character.
  scratch.put(with_length(R"({"\u0077\ud83d\ude00\/":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})"));
  EXPECT_EQ(SafetensorsFile(scratch.path).header().tensors.at(0).name, "w\xF0\x9F\x98\x80/");
}

TEST(Safetensors, NamesTheTensorInItsErrors) {
  const Scratch scratch;
  scratch.put(with_length(R"({"block.3.bias":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", "1234"));
  const Error wrong = error_of([&] { const SafetensorsFile file(scratch.path); });
  EXPECT_EQ(wrong.place.tensor, "block.3.bias");
  EXPECT_NE(wrong.message().find("block.3.bias"), std::string::npos);
  scratch.put(written(records()));
  const SafetensorsFile file(scratch.path);
  EXPECT_TRUE(is_error(error_of([&] { file.record("wieght"); }), Code::not_found, {"did you mean weight?"}));
}

TEST(Safetensors, ALyingLengthCostsNoMemory) {
  // The stream announces 100 MB and ends: only what arrived was allocated.
  std::string start(8, '\0');
  const int64_t length = kMaxHeaderBytes;
  std::memcpy(start.data(), &length, sizeof length);
  size_t largest = 0;
  const ReadBytes inner = reader_of(start, 1000);
  const ReadBytes read = [&](std::span<std::byte> out) {
    largest = std::max(largest, out.size());
    return inner(out);
  };
  EXPECT_THROW(SafetensorsStream(read, "a socket"), Error);
  EXPECT_LE(largest, size_t{1} << 16);
}

TEST(Safetensors, RefusesToWriteWhatCannotBeRead) {
  const auto refused = [](std::vector<TensorRecord> tensors, const Metadata& metadata = {}) {
    return error_of([&] { written(std::move(tensors), metadata); }).code() == Code::invalid_argument;
  };
  EXPECT_FALSE(refused(records()));
  EXPECT_TRUE(refused({{"bias", DType::f32, {1}, 0}, {"bias", DType::f32, {1}, 0}}));
  EXPECT_TRUE(refused({{"__metadata__", DType::f32, {0}, 0}}));
  EXPECT_TRUE(refused({{"bias", DType::f32, {2}, 0}}));    // too few bytes are written
  EXPECT_TRUE(refused({{"weight", DType::f32, {1}, 0}}));  // too many bytes are written
  EXPECT_TRUE(refused({{"x\xFF", DType::f32, {0}, 0}}));
  EXPECT_TRUE(refused({{"x", DType::f32, {0}, 0}}, {{"k", "\xFF"}}));
  EXPECT_TRUE(refused({{"x", DType::f32, {kBatch}, 0}}));
}

TEST(Safetensors, AFailedWriteLeavesTheOldFile) {
  const Scratch scratch;
  scratch.put("old");
  const Contents none;
  EXPECT_THROW(write_safetensors_file(scratch.path, records(), {}, fill_with(none)), Error);
  EXPECT_EQ(content_of_file(scratch.path), "old");
}

}  // namespace
}  // namespace st
