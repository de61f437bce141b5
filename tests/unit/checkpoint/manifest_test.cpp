#include "checkpoint/manifest.h"

#include <gtest/gtest.h>

#include <string>

#include "checkpoint/guarded_line.h"
#include "thrown_error.h"

namespace st {
namespace {

/// A manifest with one tensor in two files, one whole tensor and one without elements.
Manifest example() {
  Manifest m;
  m.library = "0.1.0";
  m.checkpoint = "step-00000120";
  m.sequence = 12;
  m.step = 120;
  m.time = "2026-11-24T10:44:11Z";
  m.host = "node-7";
  m.training = parse_json(R"({"epoch":3,"loss":2.5,"random":18446744073709551615})", "training");
  m.recipe = parse_json(R"({"lr":0.001})", "recipe");
  m.metadata = {{"who \"said\"", "line\nbreak \xC3\xA9"}, {"why", ""}};
  m.files = {{"model.safetensors", 4000, 200, 0x0A1B2C3D}, {"optimizer.safetensors", 3 << 20, 88, 0xFFFFFFFF}, {"index.json", 10, 10, 0}};
  m.tensors = {{"bias", TensorKind::parameter, DType::f32, {2, 3}, {{0, 0, 6, {0xDEADBEEF}}}},
               {"moment", TensorKind::optimizer, DType::bf16, {1 << 20}, {{0, 0, 1024, {1}}, {1, 1024, 1 << 20, {2, 0x00C0FFEE}}}},
               {"none", TensorKind::host, DType::boolean, {0, 7}, {}},
               {"step", TensorKind::host, DType::i64, {}, {{1, 0, 1, {3}}}}};
  return m;
}

std::string refusal_of(std::string_view text, Code code = Code::corrupt) {
  const Error error = error_of([&] { parse_manifest(text, "run/manifest.json"); });
  if (error.code() == Code::ok) return "";
  EXPECT_EQ(error.code(), code) << error.message();
  EXPECT_EQ(error.place.file, "run/manifest.json");
  EXPECT_TRUE(error.message().starts_with("run/manifest.json: ")) << error.message();
  return error.message();
}

/// The example without its checksum and with one change.
std::string changed(std::string_view from, std::string_view to) {
  std::string text = print_manifest(example());
  text.erase(text.rfind(",\"crc32c\":"));
  text += '}';
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

/// The error of the example with one change and a matching checksum.
std::string refusal_with(std::string_view from, std::string_view to) { return refusal_of(guard_line(changed(from, to))); }

TEST(Manifest, ReadsBackWhatItPrinted) {
  const Manifest written = example();
  const std::string text = print_manifest(written);
  const Manifest read = parse_manifest(text, "manifest.json");
  EXPECT_EQ(print_manifest(read), text);
  EXPECT_EQ(read.version, 1);
  EXPECT_EQ(read.checkpoint, "step-00000120");
  EXPECT_EQ(read.sequence, 12);
  EXPECT_EQ(read.training.find("random")->dump(), "18446744073709551615");
  EXPECT_EQ(read.metadata, written.metadata);
  EXPECT_EQ(read.files[0].header_crc, 0x0A1B2C3DU);
  ASSERT_EQ(read.tensors.size(), 4U);
  EXPECT_EQ(read.tensors[1].kind, TensorKind::optimizer);
  EXPECT_EQ(read.tensors[1].dtype, DType::bf16);
  EXPECT_EQ(read.tensors[1].shape, Shape({1 << 20}));
  EXPECT_EQ(read.tensors[1].pieces[1].blocks, (std::vector<uint32_t>{2, 0x00C0FFEE}));
  EXPECT_EQ(read.find("step"), &read.tensors[3]);
  EXPECT_EQ(read.find("stepp"), nullptr);
  EXPECT_EQ(read.bytes(), 24 + (2 << 20) + 8);
  EXPECT_EQ(piece_name(read.tensors[0], read.tensors[0].pieces[0]), "bias");
  EXPECT_EQ(piece_name(read.tensors[1], read.tensors[1].pieces[1]), "moment[1024:1048576]");
}

TEST(Manifest, IsTheTextOfItsDescription) {
  // Written by hand from runtime/checkpoint/README.md; the checksum is by a CRC-32C in Python.
  Manifest m;
  m.library = "0.1.0";
  m.checkpoint = "step-00000001";
  m.sequence = m.step = 1;
  m.files = {{"tensors.safetensors", 68, 64, 0x00000ABC}};
  m.tensors = {{"a", TensorKind::host, DType::f32, {1}, {{0, 0, 1, {0x89ABCDEF}}}}};
  const std::string before =
      R"({"format":"scaletrain-checkpoint","version":1,"library":"0.1.0","checkpoint":"step-00000001","sequence":1,"step":1,"time":"","host":"",)"
      R"("training":{},"recipe":{},"metadata":{},"files":[{"name":"tensors.safetensors","bytes":68,"header_bytes":64,"header_crc32c":"00000abc"}],)"
      R"("tensors":[{"name":"a","kind":"host","dtype":"F32","shape":[1],"pieces":[{"file":0,"begin":0,"end":1,"crc32c":"89abcdef"}]}])";
  EXPECT_EQ(print_manifest(m), before + ",\"crc32c\":\"43f4d9e7\"}\n");
  EXPECT_EQ(describe(m).find("crc32c"), std::string::npos);
}

TEST(Manifest, RefusesEveryChangedByteAndEveryCut) {
  const std::string text = print_manifest(example());
  for (size_t i = 0; i < text.size(); ++i) {
    EXPECT_NE(refusal_of(text.substr(0, i)), "") << i;
    for (const int bit : {0x01, 0x20, 0x80, 0xFF}) {
      std::string flipped = text;
      flipped[i] = static_cast<char>(flipped[i] ^ bit);
      EXPECT_NE(refusal_of(flipped), "") << i;
    }
  }
  EXPECT_NE(refusal_of(text + "\n"), "");
  EXPECT_NE(refusal_of(text + text), "");
}

TEST(Manifest, PassesOverMembersOfLaterWriters) {
  std::string text = changed("\"step\":120,", "\"step\":120,\"colour\":{\"deep\":[[1,2],null]},");
  text.replace(text.find("\"file\":1,"), 9, "\"file\":1,\"rank\":7,");
  text.replace(text.find("\"kind\":"), 7, "\"grain\":[8],\"kind\":");
  text.replace(text.find("\"header_bytes\":"), 15, "\"mode\":\"x\",\"header_bytes\":");
  EXPECT_EQ(print_manifest(parse_manifest(guard_line(text), "manifest.json")), print_manifest(example()));
}

TEST(Manifest, SaysWhichLibraryReadsANewerVersion) {
  const std::string text = R"({"format":"scaletrain-checkpoint","version":2,"library":"3.1.4","other":[[]]})";
  EXPECT_EQ(refusal_of(guard_line(text), Code::unsupported),
            "run/manifest.json: has format version 2, this library reads versions up to 1; it was written by ScaleTrain 3.1.4: use that "
            "version or a newer one");
}

TEST(Manifest, RefusesNamesThatLeadElsewhere) {
  for (const char* name : {"", ".", "..", "../x.safetensors", "a/b.safetensors", "/etc/x.safetensors", "..\\\\x.safetensors",
                           ".hidden.safetensors", "manifest.json", "a\\u0000.safetensors", "a\\n.safetensors"})
    EXPECT_NE(refusal_with("\"model.safetensors\"", '"' + std::string(name) + '"').find("plain file name"), std::string::npos) << name;
  EXPECT_NE(refusal_with("\"model.safetensors\"", '"' + std::string(300, 'a') + ".safetensors\""), "");
  EXPECT_NE(refusal_with("optimizer.safetensors", "model.safetensors").find("twice"), std::string::npos);
}

struct Hostile {
  const char *from, *to, *why;
};

TEST(Manifest, RefusesWhatDoesNotFit) {
  for (const auto& [from, to, why] : std::initializer_list<Hostile>{
           {"scaletrain-checkpoint", "other-checkpoint", "is not the manifest"},
           {"\"version\":1", "\"version\":0", "version must be 1 or more, got 0"},
           {"\"version\":1", "\"version\":\"1\"", "whole number"},
           {"\"step\":120", "\"step\":-1", "-1"},
           {"\"step\":120", "\"step\":1e3", "whole number"},
           {"\"step\":120,", "", "needs the members"},
           {"\"step\":120", "\"step\":120,\"step\":121", "twice"},
           {"\"recipe\":{", "\"recipe\":[{", "expected"},
           {"{\"lr\":0.001}", "[]", "recipe must be an object"},
           {"{\"lr\":0.001}", "{\"lr\":1,\"lr\":2}", "twice"},
           {"{\"lr\":0.001}", "{\"lr\":NaN}", "expected a value"},
           {"\"header_bytes\":200", "\"header_bytes\":4001", "its header would have 4001"},
           {"\"header_bytes\":200", "\"header_bytes\":7", "cannot have a header of 7"},
           {"\"header_bytes\":200", "\"header_bytes\":100000009", "cannot have a header of"},
           {"\"bytes\":10", "\"bytes\":11", "no checksum covers"},
           {"\"0a1b2c3d\"", "\"0A1B2C3D\"", "8 hexadecimal digits"},
           {"\"0a1b2c3d\"", "\"0a1b2c3\"", "8 hexadecimal digits"},
           {"\"bytes\":4000,", "", "needs the members"},
       }) {
    EXPECT_NE(refusal_with(from, to).find(why), std::string::npos) << to << ": " << refusal_with(from, to);
  }
}

TEST(Manifest, NamesTheTensorThatDoesNotFit) {
  const char* overflow = "[3037000500,3037000500,0]";  // overflows 2^63, though one dimension is 0
  for (const auto& [from, to, why] : std::initializer_list<Hostile>{
           {"\"F32\"", "\"NaN\"", "unknown dtype NaN"},
           {"\"parameter\"", "\"weights\"", "host, got weights"},
           {"[2,3]", "[2,-3]", "-3"},
           {"[2,3]", "[2,4]", "has 8 elements, its pieces have 6"},
           {"[2,3]", "[2,2]", "has 4 elements, its pieces have 6"},
           {"[2,3]", "[1,1,1,1,1,1,1,1,6]", "more than 8 dimensions"},
           {"[2,3]", overflow, "overflows 64 bits"},
           {"[2,3]", "[4611686018427387904]", "overflows 64 bits"},
           {"[2,3]", "[9223372036854775808]", "does not fit 64 bits"},
           {"\"kind\":\"parameter\",", "", "needs the members"},
           {"\"file\":0", "\"file\":2", "a piece in file 2"},  // not a safetensors file
           {"\"file\":0", "\"file\":3", "a piece in file 3"},
           {"\"file\":0", "\"file\":-1", "-1"},
           {"\"file\":0", "\"file\":4294967296", "a piece in file"},
           {"\"begin\":0", "\"begin\":1", "one is missing"},
           {"\"end\":6", "\"end\":7", "its pieces have 7"},
           {"\"end\":6", "\"end\":0", "it is empty"},
           {"\"deadbeef\"", "\"deadbeefdeadbeef\"", "has 2 checksums for a piece of 1 blocks"},
           {"\"deadbeef\"", "\"\"", "has 0 checksums for a piece of 1 blocks"},
           {"\"deadbeef\"", "\"deadbee\"", "8 hexadecimal digits"},
       }) {
    const std::string refusal = refusal_with(from, to);
    EXPECT_NE(refusal.find(why), std::string::npos) << to << ": " << refusal;
    EXPECT_NE(refusal.find(refusal.find("at byte") == std::string::npos ? "tensor bias" : "manifest"), std::string::npos) << refusal;
  }
  EXPECT_NE(refusal_with("\"begin\":1024", "\"begin\":1000")
                .find("tensor moment: has a piece of elements [1000, 1048576) where a piece from element 1024 is expected: pieces overlap"),
            std::string::npos);
  EXPECT_NE(refusal_with("\"moment\"", "\"bias\"").find("tensor bias: is listed twice"), std::string::npos);
  EXPECT_NE(refusal_with("\"moment\"", "\"a\"").find("in name order"), std::string::npos);
  EXPECT_NE(refusal_with("\"pieces\":[]", "\"pieces\":[{\"file\":0,\"begin\":0,\"end\":0,\"crc32c\":\"\"}]").find("it is empty"),
            std::string::npos);
}

TEST(Manifest, ReadsNoMoreStateThanMayBe) {
  std::string many = "{\"a\":[0";
  for (int i = 0; i < 600000; ++i) many += ",0";
  EXPECT_NE(refusal_with("{\"lr\":0.001}", many + "]}").find("recipe must be at most 1048576 bytes, got 1200009"), std::string::npos);
  EXPECT_NE(refusal_with("\"why\":\"\"", "\"why\":\"" + std::string(size_t{17} << 20, 'x') + '"').find("metadata has more than"),
            std::string::npos);
  EXPECT_NE(refusal_with("{\"lr\":0.001}", "{\"a\":" + std::string(1000, '[') + std::string(1000, ']') + "}").find("nested deeper"),
            std::string::npos);
}

TEST(Manifest, PrintsNothingThatItWouldNotRead) {
  Manifest m = example();
  m.metadata["bad"] = "\xFF";
  EXPECT_THROW(print_manifest(m), Error);
  m = example();
  m.metadata["long"] = std::string(size_t{17} << 20, 'x');
  EXPECT_THROW(print_manifest(m), Error);
  m = example();
  m.recipe.append("long", Json(std::string(size_t{2} << 20, 'x')));
  EXPECT_THROW(print_manifest(m), Error);
}

}  // namespace
}  // namespace st
