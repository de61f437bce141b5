#include "formula_checkpoint.h"

#include <gtest/gtest.h>

#include <fstream>
#include <utility>

#include "base/os/machine.h"

namespace st {

namespace fs = std::filesystem;

std::byte formula_byte(std::string_view name, int64_t i, int32_t seed) {
  uint64_t x = static_cast<uint64_t>(i) * 0x9E3779B97F4A7C15U + static_cast<uint64_t>(seed);
  for (const char c : name) x = (x ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
  return static_cast<std::byte>((x ^ x >> 29) >> 32);
}

std::vector<std::byte> formula_bytes(const FormulaTensor& tensor, int32_t seed) {
  std::vector<std::byte> bytes(static_cast<size_t>(tensor.shape.elements() * bytes_of(tensor.dtype)));
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = formula_byte(tensor.name, static_cast<int64_t>(i), seed);
  return bytes;
}

std::vector<FormulaTensor> small_tensors() {
  using enum TensorKind;
  return {{"block.0.weight", parameter, DType::f32, {33, 64}},
          {"block.0.bias", parameter, DType::bf16, {64}},
          {"block.0.none", parameter, DType::f32, {0, 64}},
          {"moment1.block.0.weight", optimizer, DType::f32, {33, 64}},
          {"moment2.block.0.weight", optimizer, DType::f16, {33, 64}},
          {"wide", parameter, DType::f64, {1025}},
          {"counts", host, DType::i64, {3, 1, 2}},
          {"one", host, DType::i32, {}},
          {"mask", host, DType::boolean, {5000}},
          {"text \"of\" a host", host, DType::u8, {1024}}};
}

std::vector<FormulaTensor> tiny_tensors() {
  using enum TensorKind;
  return {{"weight", parameter, DType::f32, {5, 3}}, {"moment", optimizer, DType::f16, {7}}, {"none", optimizer, DType::f32, {0}}};
}

void expect_formula(const CheckpointReader& reader, const std::vector<FormulaTensor>& tensors, int32_t seed) {
  EXPECT_EQ(reader.manifest().tensors.size(), tensors.size());
  for (const FormulaTensor& t : tensors) {
    const LogicalTensor* found = reader.manifest().find(t.name);
    ASSERT_NE(found, nullptr) << t.name;
    EXPECT_EQ(found->kind, t.kind);
    EXPECT_EQ(found->dtype, t.dtype);
    EXPECT_EQ(found->shape, t.shape);
    std::vector<std::byte> bytes(static_cast<size_t>(found->bytes()));
    reader.read(*found, 0, t.shape.elements(), bytes);
    EXPECT_EQ(bytes, formula_bytes(t, seed)) << t.name;
  }
}

void write_formula_checkpoint(const fs::path& folder, const std::vector<FormulaTensor>& tensors, int32_t seed,
                              const WriteOptions& options) {
  fs::remove_all(folder);
  fs::create_directories(folder);
  Manifest manifest;
  manifest.checkpoint = folder.filename();
  manifest.sequence = 7;
  manifest.step = 120;
  manifest.training = parse_json(R"({"loss":2.5})", "training");
  manifest.metadata = {{"who", "a test"}};
  std::vector<std::vector<std::byte>> bytes;
  std::vector<WrittenTensor> written;
  for (const FormulaTensor& t : tensors) bytes.push_back(formula_bytes(t, seed));
  for (size_t i = 0; i < tensors.size(); ++i)
    written.push_back({tensors[i].name, tensors[i].kind, tensors[i].dtype, tensors[i].shape, bytes[i], {}});
  WriteProgress progress;
  write_checkpoint(folder, std::move(manifest), written, options, progress);
}

TestFolder::TestFolder(std::string_view name) : path_(fs::path(testing::TempDir()) / text("st_", name, "_", os::process_id())) {
  fs::remove_all(path_);
  fs::create_directories(path_);
}

TestFolder::~TestFolder() { fs::remove_all(path_); }

void put_file(const fs::path& path, std::string_view content) {
  std::ofstream(path, std::ios::binary).write(content.data(), static_cast<std::streamsize>(content.size()));
}

void put_byte(const fs::path& path, size_t at, char byte) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(static_cast<std::streamoff>(at)).put(byte);
}

}  // namespace st
