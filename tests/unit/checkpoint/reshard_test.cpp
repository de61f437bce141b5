#include "checkpoint/reshard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "checkpoint/export_weights.h"
#include "checkpoint/safetensors.h"
#include "formula_checkpoint.h"
#include "thrown_error.h"

namespace st {
namespace {

namespace fs = std::filesystem;

TEST(Reshard, GivesEachElementToOneShardAtTheGrain) {
  for (const int64_t elements :
       {int64_t{0}, int64_t{1}, int64_t{1023}, int64_t{1024}, int64_t{1025}, int64_t{5000}, int64_t{1} << 40, INT64_MAX - 2048})
    for (const int32_t shards : {1, 2, 3, 4, 5, 8, 1000, kMaxShards}) {
      const int64_t fair = elements / shards / kShardGrain * kShardGrain;
      int64_t next = 0;
      for (int32_t s = 0; s < shards; ++s) {
        const auto [begin, end] = shard_range(elements, s, shards);
        ASSERT_EQ(begin, next);
        ASSERT_LE(begin, end);
        ASSERT_TRUE(end == elements || end % kShardGrain == 0) << elements << " " << s << "/" << shards;
        ASSERT_LE(end - begin, fair + 2 * kShardGrain);
        ASSERT_TRUE(end == elements || end - begin >= fair - kShardGrain) << elements << " " << s << "/" << shards;
        next = end;
      }
      ASSERT_EQ(next, elements);
    }
}

/// Checks what `readers` ranks read, each an equal part of each tensor, not aligned to the grain.
void expect_formula_on(const CheckpointReader& reader, int64_t readers) {
  for (const FormulaTensor& t : small_tensors()) {
    const auto all = formula_bytes(t);
    const LogicalTensor& tensor = *reader.manifest().find(t.name);
    const int64_t elements = t.shape.elements(), size = bytes_of(t.dtype);
    for (int64_t r = 0; r < readers; ++r) {
      const int64_t begin = elements * r / readers, end = elements * (r + 1) / readers;
      std::vector<std::byte> got(static_cast<size_t>((end - begin) * size));
      reader.read(tensor, begin, end, got);
      EXPECT_TRUE(std::ranges::equal(got, std::span(all).subspan(begin * size, (end - begin) * size)))
          << t.name << " " << r << "/" << readers;
      int64_t planned = 0;
      for (const ReadRange& range : reader.plan(tensor, begin, end)) {
        EXPECT_EQ(range.to, planned);
        planned += range.bytes;
      }
      EXPECT_EQ(planned, std::ssize(got));
    }
  }
}

/// Expects every file of `folder` in `other`, which may have more.
void expect_same_files(const fs::path& folder, const fs::path& other) {
  for (const auto& entry : fs::directory_iterator(folder))
    EXPECT_EQ(content_of_file(other / entry.path().filename()), content_of_file(entry.path())) << entry.path() << " and " << other;
}

TEST(Reshard, ReadsTheSameFromAnyNumberOnAnyNumber) {  // T22
  const TestFolder tmp("reshard");
  const std::vector<int32_t> counts = {1, 2, 3, 4, 5, 8};
  write_formula_checkpoint(tmp / "whole", small_tensors());
  const CheckpointReader whole(tmp / "whole");
  for (const int32_t count : counts) {
    reshard(whole, tmp / text(count), count, {});
    const CheckpointReader reader(tmp / text(count));
    EXPECT_EQ(reader.digest(), whole.digest());
    EXPECT_EQ(reader.manifest().files.size(), static_cast<size_t>(3 * count + (count > 1 ? 1 : 0)));  // three kinds, and an index
    EXPECT_EQ(reader.manifest().training.dump(), whole.manifest().training.dump());
    for (const int64_t readers : counts) expect_formula_on(reader, readers);
  }
  // The result of resharding does not depend on the shards before.
  for (size_t i = 0; i < counts.size(); ++i) {
    const int32_t to = counts[(i + 1) % counts.size()];
    const CheckpointReader reader(tmp / text(counts[i]));
    reshard(reader, tmp / "again", to, {});
    expect_same_files(tmp / text(to), tmp / "again");
    fs::remove_all(tmp / "again");
    reshard(reader, tmp / "again", 0, {});
    expect_same_files(tmp / "whole", tmp / "again");
    fs::remove_all(tmp / "again");
  }
}

TEST(Reshard, LeavesNothingBehindWhenItFails) {
  const TestFolder tmp("reshard_fails");
  write_formula_checkpoint(tmp / "a", small_tensors());
  const CheckpointReader reader(tmp / "a");
  std::string file = content_of_file(tmp / "a/tensors.safetensors");
  file.back() ^= 1;
  put_file(tmp / "a/tensors.safetensors", file);
  for (const int32_t shards : {0, 3}) {
    const Error error = error_of([&] { reshard(reader, tmp / "b", shards, {}); });
    EXPECT_EQ(error.code(), Code::corrupt);
    EXPECT_EQ(error.place.tensor, "text \"of\" a host");
    EXPECT_FALSE(fs::exists(tmp / "b"));
  }
  EXPECT_THROW(reshard(reader, tmp / "a", 2, {}), Error);  // not empty
  EXPECT_TRUE(fs::exists(tmp / "a/manifest.json"));
  EXPECT_THROW(reshard(reader, tmp / "b", -1, {}), Error);
  EXPECT_THROW(reshard(reader, tmp / "b", kMaxShards + 1, {}), Error);
}

TEST(ExportWeights, WritesWholeTensorsFromAnyShards) {
  const TestFolder tmp("export");
  write_formula_checkpoint(tmp / "whole", small_tensors());
  reshard(CheckpointReader(tmp / "whole"), tmp / "cut", 3, {});
  for (const bool everything : {false, true}) {
    export_weights(CheckpointReader(tmp / "cut"), tmp / "a.safetensors", everything);
    const SafetensorsFile file(tmp / "a.safetensors");
    size_t expected = 0;
    for (const FormulaTensor& t : small_tensors()) {
      if (!everything && t.kind != TensorKind::parameter) continue;
      ++expected;
      const TensorRecord& record = file.record(t.name);
      EXPECT_EQ(record.dtype, t.dtype);
      EXPECT_EQ(record.shape, t.shape);
      EXPECT_TRUE(std::ranges::equal(file.bytes(record), formula_bytes(t))) << t.name;
    }
    EXPECT_EQ(file.header().tensors.size(), expected);
  }

  const std::string before = content_of_file(tmp / "a.safetensors");
  std::string shard = content_of_file(tmp / "cut/model-00002-of-00003.safetensors");
  shard.back() ^= 1;
  put_file(tmp / "cut/model-00002-of-00003.safetensors", shard);
  EXPECT_THROW(export_weights(CheckpointReader(tmp / "cut"), tmp / "a.safetensors", false), Error);
  EXPECT_EQ(content_of_file(tmp / "a.safetensors"), before);
}

TEST(ExportWeights, WritesAllOfAHosts) {
  const TestFolder tmp("export_host");
  write_formula_checkpoint(tmp / "a", {{"x", TensorKind::host, DType::f32, {3}}});
  export_weights(CheckpointReader(tmp / "a"), tmp / "a.safetensors", false);
  EXPECT_EQ(SafetensorsFile(tmp / "a.safetensors").header().tensors.size(), 1U);
}

}  // namespace
}  // namespace st
