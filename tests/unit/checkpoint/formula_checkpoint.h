// A checkpoint whose bytes follow from a formula, so that a test knows what it must read without a second copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "../base/folder_test.h"
#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/checkpoint_writer.h"

namespace st {

struct FormulaTensor {
  std::string name;
  TensorKind kind;
  DType dtype;
  Shape shape;
};

/// Byte i of the tensor `name` in the checkpoint of that seed.
std::byte formula_byte(std::string_view name, int64_t i, int32_t seed);
std::vector<std::byte> formula_bytes(const FormulaTensor& tensor, int32_t seed = 0);

/// All kinds, many dtypes, sizes from zero to several grains; about 40 kB.
std::vector<FormulaTensor> small_tensors();
/// A few hundred bytes, for tests that change each byte.
std::vector<FormulaTensor> tiny_tensors();

/// Expects these tensors and nothing else, each byte as the formula gives it.
void expect_formula(const CheckpointReader& reader, const std::vector<FormulaTensor>& tensors, int32_t seed = 0);

/// Writes them into `folder`, which is replaced.
void write_formula_checkpoint(const std::filesystem::path& folder, const std::vector<FormulaTensor>& tensors, int32_t seed = 0,
                              const WriteOptions& options = {});

/// A folder that is removed when the test ends.
class TestFolder {
 public:
  explicit TestFolder(std::string_view name);
  ~TestFolder();
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

void put_file(const std::filesystem::path& path, std::string_view content);
/// Overwrites one byte of a file.
void put_byte(const std::filesystem::path& path, size_t at, char byte);

}  // namespace st
