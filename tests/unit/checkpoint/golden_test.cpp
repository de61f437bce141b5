// Checkpoints of every released format version, in tests/golden/checkpoint-v<version>, stay readable. Their values follow from a formula
// (formula_checkpoint.h); their manifests are pinned here, so a regenerated file fails the test.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "base/digest.h"
#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/reshard.h"
#include "formula_checkpoint.h"

namespace st {
namespace {

namespace fs = std::filesystem;

constexpr int32_t kSeed = 1;

/// Version 1: every dtype and kind, no elements, no dimensions, eight dimensions, a name with escapes, and a tensor larger than a grain.
std::vector<FormulaTensor> tensors_of_version_1() {
  using enum TensorKind;
  return {{"block.weight", parameter, DType::f32, {27, 40}},
          {"block.bias", parameter, DType::bf16, {40}},
          {"none", parameter, DType::f32, {0, 40}},
          {"moment1.block.weight", optimizer, DType::f16, {27, 40}},
          {"deep", optimizer, DType::f64, {1, 2, 1, 1, 3, 1, 1, 1}},
          {"one", host, DType::i64, {}},
          {"\"größe\"\n", host, DType::i32, {3}},
          {"codes", host, DType::u8, {1500}},
          {"mask", host, DType::boolean, {7}}};
}

std::string pin_of(const fs::path& file) {
  Digest digest;
  digest.update(content_of_file(file));
  return digest.hex();
}

struct Golden {
  const char *name, *manifest;
};

TEST(GoldenCheckpoint, OpensForEver) {
  Workers workers(1);
  for (const auto& [name, manifest] : std::initializer_list<Golden>{{"checkpoint-v1/whole", "37d9587702551363dcb084f8b3b99a73"},
                                                                    {"checkpoint-v1/cut-in-3", "7a12acaacd1a934316d9aa971080ee12"}}) {
    const fs::path folder = fs::path(ST_GOLDEN) / name;
    EXPECT_EQ(pin_of(folder / "manifest.json"), manifest) << name << " was written anew, by what it is to test";
    const CheckpointReader reader(folder);
    EXPECT_EQ(reader.manifest().version, 1);
    EXPECT_EQ(reader.manifest().library, "0.1.0");
    EXPECT_EQ(reader.manifest().checkpoint, "whole");
    EXPECT_EQ(reader.manifest().step, 120);
    EXPECT_EQ(reader.manifest().sequence, 7);
    EXPECT_EQ(reader.manifest().training.dump(), R"({"loss":2.5})");
    EXPECT_EQ(reader.manifest().metadata, (Metadata{{"who", "a test"}}));
    EXPECT_TRUE(reader.verify(workers).empty());
    expect_formula(reader, tensors_of_version_1(), kSeed);
  }
}

// Run by hand once for a new version: ST_GOLDEN_TO=tests/golden/checkpoint-v2 checkpoint_format_test --gtest_also_run_disabled_tests
// --gtest_filter='GoldenCheckpoint.*'
TEST(GoldenCheckpoint, DISABLED_WritesThisVersion) {
  const char* to = std::getenv("ST_GOLDEN_TO");
  ASSERT_NE(to, nullptr);
  ASSERT_FALSE(fs::exists(to));
  write_formula_checkpoint(fs::path(to) / "whole", tensors_of_version_1(), kSeed);
  reshard(CheckpointReader(fs::path(to) / "whole"), fs::path(to) / "cut-in-3", 3, {});
}

}  // namespace
}  // namespace st
