// A checkpoint whose bytes follow from a formula, so that a test knows what it must read without a second copy of it.
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

/// Byte i of a tensor of that name, in the checkpoint of that seed.
std::byte formula_byte(std::string_view name, int64_t i, int32_t seed);
std::vector<std::byte> formula_bytes(const FormulaTensor& tensor, int32_t seed = 0);

/// All kinds, many dtypes, sizes from none to some grains; about 40 kB.
std::vector<FormulaTensor> small_tensors();
/// Some hundred bytes, for tests that try each of them.
std::vector<FormulaTensor> tiny_tensors();

/// That it holds these tensors and nothing else, each of their bytes as the formula has it.
void expect_formula(const CheckpointReader& reader, const std::vector<FormulaTensor>& tensors, int32_t seed = 0);

/// Writes them into `folder`, which is made anew.
void write_formula_checkpoint(const std::filesystem::path& folder, const std::vector<FormulaTensor>& tensors, int32_t seed = 0,
                              const WriteOptions& options = {});

/// A folder that goes when the test ends.
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
/// Over the byte that stands there.
void put_byte(const std::filesystem::path& path, size_t at, char byte);

}  // namespace st
