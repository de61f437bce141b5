#include "checkpoint/checkpoint_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "base/digest.h"
#include "checkpoint/guarded_line.h"
#include "formula_checkpoint.h"
#include "thrown_error.h"

namespace st {
namespace {

namespace fs = std::filesystem;

std::vector<std::byte> read(const CheckpointReader& reader, const LogicalTensor& tensor, int64_t begin, int64_t end) {
  std::vector<std::byte> out(static_cast<size_t>((end - begin) * bytes_of(tensor.dtype)));
  reader.read(tensor, begin, end, out);
  return out;
}

/// The error of a damaged checkpoint, whether it is found on opening or on reading the data.
Error refusal_of(const fs::path& folder) {
  return error_of([&] {
    Workers workers(1);
    const CheckpointReader reader(folder);
    std::vector<const LogicalTensor*> all;
    for (const LogicalTensor& t : reader.manifest().tensors) all.push_back(&t);
    reader.check(all, workers);
  });
}

TEST(CheckpointReader, ReadsAnyElementsOfAnyTensor) {
  const TestFolder tmp("reader");
  write_formula_checkpoint(tmp / "a", small_tensors());
  const CheckpointReader reader(tmp / "a");
  EXPECT_EQ(reader.manifest().step, 120);
  EXPECT_EQ(reader.manifest().checkpoint, "a");
  EXPECT_EQ(reader.manifest().library, library_version());
  expect_formula(reader, small_tensors());
  const LogicalTensor& t = *reader.manifest().find("block.0.weight");
  const auto all = formula_bytes(small_tensors()[0]);
  for (int64_t begin = 0; begin <= 2112; begin += 97)
    for (int64_t end = begin; end <= 2112; end += 101)
      EXPECT_TRUE(std::ranges::equal(read(reader, t, begin, end), std::span(all).subspan(begin * 4, (end - begin) * 4)))
          << begin << " " << end;
  std::vector<std::byte> four(4);
  EXPECT_THROW(reader.read(t, 2112, 2113, four), Error);
  EXPECT_THROW(reader.read(t, -1, 0, four), Error);
  EXPECT_THROW(reader.read(t, 0, 2, four), Error);
}

TEST(CheckpointReader, ReadsAcrossBlocksOfAMebibyte) {
  const TestFolder tmp("reader_blocks");
  const std::vector<FormulaTensor> large = {{"large", TensorKind::host, DType::u8, {2 * kChecksumBlock + 500'000}}};
  write_formula_checkpoint(tmp / "a", large);
  const CheckpointReader reader(tmp / "a");
  const LogicalTensor& t = reader.manifest().tensors[0];
  EXPECT_EQ(t.pieces[0].blocks.size(), 3U);
  const auto all = formula_bytes(large[0]);
  for (const int64_t begin : {int64_t{0}, int64_t{1}, kChecksumBlock - 1, kChecksumBlock, 2 * kChecksumBlock + 7})
    for (const int64_t end : {begin, kChecksumBlock, kChecksumBlock + 1, 2 * kChecksumBlock, t.shape.elements()}) {
      const int64_t last = std::max(begin, end);
      const auto got = read(reader, t, begin, last);
      ASSERT_EQ(std::ssize(got), last - begin);
      EXPECT_TRUE(got.empty() || std::memcmp(got.data(), all.data() + begin, got.size()) == 0) << begin << " " << last;
    }

  // Only blocks of the requested range are verified.
  const int64_t start = reader.plan(t, 0, 1)[0].offset, at = start + kChecksumBlock + 12345;
  std::string file = content_of_file(tmp / "a/tensors.safetensors");
  file[static_cast<size_t>(at)] ^= 4;
  put_file(tmp / "a/tensors.safetensors", file);
  EXPECT_NO_THROW(read(reader, t, 0, kChecksumBlock));
  EXPECT_NO_THROW(read(reader, t, 2 * kChecksumBlock, t.shape.elements()));
  const Error error = error_of([&] { read(reader, t, 2 * kChecksumBlock - 1, 2 * kChecksumBlock + 1); });
  EXPECT_TRUE(is_error(error, Code::corrupt, {"tensors.safetensors: tensor large: block 1, bytes "}));
  EXPECT_EQ(error.place.tensor, "large");
  EXPECT_EQ(error.place.file, (tmp / "a/tensors.safetensors").string());
  EXPECT_EQ(error.place.offset, start + kChecksumBlock);
  Workers workers(2);
  const auto problems = reader.verify(workers);
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems[0].file, "tensors.safetensors");
  EXPECT_EQ(problems[0].tensor, "large");
  EXPECT_EQ(problems[0].block, 1);
  EXPECT_EQ(problems[0].offset, start + kChecksumBlock);
}

TEST(CheckpointReader, HasTheDigestOfItsTensors) {
  const TestFolder tmp("reader_digest");
  auto tensors = small_tensors();
  write_formula_checkpoint(tmp / "trainer", tensors);
  std::erase_if(tensors, [](const FormulaTensor& t) { return t.kind != TensorKind::host; });
  write_formula_checkpoint(tmp / "host", tensors);

  const auto digest_of = [](bool host) {
    auto all = small_tensors();
    std::ranges::sort(all, {}, &FormulaTensor::name);
    Digest digest;
    for (const FormulaTensor& t : all) {
      if ((t.kind == TensorKind::host) != host) continue;
      digest.update_sized(t.name);
      digest.update_sized(name_of(t.dtype));
      digest.update_sized(text(t.shape));
      digest.update(formula_bytes(t));
    }
    return digest.hex();
  };
  EXPECT_EQ(CheckpointReader(tmp / "trainer").digest(), digest_of(false));
  EXPECT_EQ(CheckpointReader(tmp / "host").digest(), digest_of(true));
}

TEST(CheckpointReader, RefusesEveryChangedByteOfEveryFile) {  // T21
  const TestFolder tmp("reader_flips");
  write_formula_checkpoint(tmp / "a", tiny_tensors());
  struct File {
    const char *name, *tensor;
    size_t data;  // offset of the data
  };
  std::vector<File> files = {{"manifest.json", "", SIZE_MAX}, {"model.safetensors", "weight", 0}, {"optimizer.safetensors", "moment", 0}};
  for (size_t f = 1; f < files.size(); ++f)
    files[f].data = static_cast<size_t>(CheckpointReader(tmp / "a").manifest().files[f - 1].header_bytes);

  for (const auto& [name, tensor, data] : files) {
    const fs::path path = tmp / "a" / name;
    const std::string good = content_of_file(path);
    ASSERT_FALSE(good.empty());
    for (size_t i = 0; i < good.size(); ++i) {
      put_byte(path, i, static_cast<char>(good[i] ^ (1 << i % 8)));
      const Error error = refusal_of(tmp / "a");
      EXPECT_EQ(error.code(), Code::corrupt) << name << " byte " << i << ": " << error.message();
      EXPECT_EQ(error.place.file, path.string());
      EXPECT_EQ(error.place.tensor, i < data ? "" : tensor);
      EXPECT_EQ(error.message().find(": block 0, bytes ") == std::string::npos, i < data) << error.message();
      put_byte(path, i, good[i]);
    }
    for (size_t size = good.size(); size-- > 0;) {
      fs::resize_file(path, size);
      EXPECT_EQ(refusal_of(tmp / "a").code(), Code::corrupt) << name << " cut to " << size;
    }
    put_file(path, good + '\0');
    EXPECT_EQ(refusal_of(tmp / "a").code(), Code::corrupt) << name;
    fs::remove(path);
    EXPECT_EQ(refusal_of(tmp / "a").code(), Code::corrupt) << name << " is missing";
    put_file(path, good);
    EXPECT_EQ(refusal_of(tmp / "a").code(), Code::ok);
  }
}

TEST(CheckpointReader, RefusesFilesOfAnotherCheckpoint) {
  const TestFolder tmp("reader_swaps");
  write_formula_checkpoint(tmp / "a", tiny_tensors(), 1);
  write_formula_checkpoint(tmp / "b", tiny_tensors(), 2);
  write_formula_checkpoint(tmp / "c", small_tensors(), 1);
  for (const char* name : {"manifest.json", "model.safetensors", "optimizer.safetensors"})
    for (const char* other : {"b", "c"}) {
      const std::string good = content_of_file(tmp / "a" / name);
      put_file(tmp / "a" / name, content_of_file(tmp / other / name));
      const Error error = refusal_of(tmp / "a");
      EXPECT_TRUE(is_error(error, Code::corrupt, {".safetensors"})) << name << " of " << other;
      put_file(tmp / "a" / name, good);
    }
  // One of its own files in place of another.
  const std::string good = content_of_file(tmp / "a/optimizer.safetensors");
  put_file(tmp / "a/optimizer.safetensors", content_of_file(tmp / "a/model.safetensors"));
  EXPECT_EQ(refusal_of(tmp / "a").code(), Code::corrupt);
  put_file(tmp / "a/optimizer.safetensors", good);
  // An extra file is ignored.
  put_file(tmp / "a/optimizer (copy).safetensors", good);
  EXPECT_EQ(refusal_of(tmp / "a").code(), Code::ok);
}

TEST(CheckpointReader, TellsAllProblemsAtOnce) {
  const TestFolder tmp("reader_problems");
  write_formula_checkpoint(tmp / "a", small_tensors());
  fs::remove(tmp / "a/optimizer.safetensors");
  for (const char* name : {"model.safetensors", "tensors.safetensors"}) {
    std::string file = content_of_file(tmp / "a" / name);
    file.back() ^= 1;
    put_file(tmp / "a" / name, file);
  }
  Workers workers(2);
  const auto problems = CheckpointReader::problems_of(tmp / "a", workers);
  ASSERT_EQ(problems.size(), 3U);
  EXPECT_EQ(problems[0].file, "optimizer.safetensors");
  EXPECT_NE(problems[0].message.find("is missing"), std::string::npos);
  EXPECT_EQ(problems[1].file, "model.safetensors");
  EXPECT_EQ(problems[1].tensor, "block.0.bias");
  EXPECT_EQ(problems[2].file, "tensors.safetensors");
  EXPECT_EQ(problems[2].block, 0);
  EXPECT_EQ(CheckpointReader::problems_of(tmp / "a", workers, 2).size(), 2U);
  EXPECT_THROW(CheckpointReader(tmp / "a"), Error);

  std::string manifest = content_of_file(tmp / "a/manifest.json");
  manifest[50] ^= 1;
  put_file(tmp / "a/manifest.json", manifest);
  EXPECT_EQ(CheckpointReader::problems_of(tmp / "a", workers).size(), 1U);
}

TEST(CheckpointReader, SaysWhatIsNoCheckpoint) {
  const TestFolder tmp("reader_none");
  Workers workers(1);
  EXPECT_NE(refusal_of(tmp / "none").message().find("there is no such folder"), std::string::npos);
  fs::create_directories(tmp / "leftover");
  put_file(tmp / "leftover/model.safetensors", "half");
  const Error error = refusal_of(tmp / "leftover");
  EXPECT_TRUE(is_error(error, Code::corrupt, {"is not a checkpoint: it has no manifest.json; a save that was killed"}));
  EXPECT_EQ(error.place.file, (tmp / "leftover").string());
  EXPECT_EQ(CheckpointReader::problems_of(tmp / "leftover", workers).size(), 1U);
  EXPECT_EQ(error_of([&] { CheckpointReader::problems_of(tmp / "none", workers); }).code(), Code::not_found);
}

TEST(CheckpointReader, HoldsWhatItReads) {
  const TestFolder tmp("reader_hold");
  write_formula_checkpoint(tmp / "a", tiny_tensors());
  const std::string manifest = tmp / "a/manifest.json";
  {
    const CheckpointReader first(tmp / "a"), second(tmp / "a");
    EXPECT_FALSE(os::FileHold::take(manifest, os::FileHold::Kind::exclusive));
  }
  const auto removing = os::FileHold::take(manifest, os::FileHold::Kind::exclusive);
  ASSERT_TRUE(removing);
  EXPECT_NE(refusal_of(tmp / "a").message().find("is being removed"), std::string::npos);
}

/// The error of the tiny checkpoint after a change of its manifest with a matching checksum.
Error refusal_when_changed(std::string_view from, std::string_view to) {
  const TestFolder tmp("reader_hostile");
  write_formula_checkpoint(tmp / "a", tiny_tensors());
  std::string manifest = content_of_file(tmp / "a/manifest.json");
  manifest.erase(manifest.rfind(",\"crc32c\":"));
  const size_t at = manifest.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  put_file(tmp / "a/manifest.json", guard_line(manifest.replace(at, from.size(), to) + "}"));
  return refusal_of(tmp / "a");
}

TEST(CheckpointReader, RefusesAManifestThatItsFilesContradict) {
  EXPECT_EQ(refusal_when_changed("120", "121").code(), Code::ok);  // no other file has the step
  EXPECT_NE(refusal_when_changed("\"weight\"", "\"wait\"").message().find("tensor wait: the file has no tensor wait"), std::string::npos);
  EXPECT_NE(refusal_when_changed("[5,3]", "[15]").message().find("tensor weight: is f32 [5, 3] in the file and f32 [15] in the manifest"),
            std::string::npos);
  EXPECT_NE(refusal_when_changed("\"F16\"", "\"BF16\"").message().find("is f16 [7] in the file and bf16 [7]"), std::string::npos);
  const Error other_file = refusal_when_changed("{\"file\":0", "{\"file\":1");
  EXPECT_EQ(other_file.code(), Code::corrupt);
  const Error unguarded =
      refusal_when_changed("\"shape\":[7],\"pieces\":[{\"file\":1,\"begin\":0,\"end\":7,", "\"shape\":[0],\"pieces\":[],\"was\":[{");
  EXPECT_NE(unguarded.message().find("optimizer.safetensors: tensor moment: is not in the manifest"), std::string::npos)
      << unguarded.message();
  EXPECT_NE(refusal_when_changed("\"model.safetensors\"", "\"optimizer (2).safetensors\"").message().find("is missing"), std::string::npos);
}

TEST(CheckpointReader, OpensMoreShardsThanAProcessHasFiles) {
  const TestFolder tmp("reader_shards");
  std::vector<FormulaTensor> tensors;
  for (int i = 0; i < 70; ++i) tensors.push_back({text("t", i), TensorKind::host, DType::u8, {1}});
  WriteOptions options;
  options.file_bytes = 1;
  write_formula_checkpoint(tmp / "a", tensors, 0, options);
  const auto before = open_files();
  const CheckpointReader reader(tmp / "a");
  EXPECT_EQ(reader.manifest().files.size(), 70U);
  EXPECT_EQ(open_files() - before, 64 + 1);  // plus the file that holds the checkpoint
  expect_formula(reader, tensors);
}

}  // namespace
}  // namespace st
