#include "checkpoint/checkpoint_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "../base/folder_test.h"
#include "base/crc32c.h"
#include "base/os/file_access.h"
#include "base/os/machine.h"
#include "checkpoint/safetensors.h"
#include "failing_disk.h"
#include "thrown_error.h"

namespace st {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> lines_of_file(const fs::path& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

/// A folder to write a checkpoint into, and tensors of all kinds with random bytes.
class CheckpointWriter : public FolderTest {
 protected:
  ~CheckpointWriter() override {
    failing_disk_fail(nullptr, "1", 0);
    failing_disk_watch(nullptr, nullptr);
    fs::remove(log());
  }

  std::string log() const { return folder_.string() + ".log"; }

  void add(const std::string& name, TensorKind kind, DType dtype, const Shape& shape, bool by_copy = false) {
    auto& bytes = values_[name];
    bytes.resize(static_cast<size_t>(shape.elements() * bytes_of(dtype)));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random_());
    WrittenTensor tensor{name, kind, dtype, shape, {}, {}};
    if (by_copy)
      tensor.copy = [&bytes](int64_t first, std::span<std::byte> out) { std::memcpy(out.data(), bytes.data() + first, out.size()); };
    else
      tensor.bytes = bytes;
    tensors_.push_back(std::move(tensor));
  }
  void add_some_of_each_kind() {
    add("layer.weight", TensorKind::parameter, DType::f32, {3, 5});
    add("layer.bias", TensorKind::parameter, DType::bf16, {7}, true);
    add("none", TensorKind::parameter, DType::f32, {0, 4});
    add("layer.moment", TensorKind::optimizer, DType::f32, {3, 5}, true);
    add("sampler", TensorKind::host, DType::u8, {9});
    add("count", TensorKind::host, DType::i64, {});
  }

  Manifest write(const WriteOptions& options = {}) {
    Manifest manifest;
    manifest.training = Json::empty(Json::Kind::object);
    manifest.recipe = Json::empty(Json::Kind::object);
    manifest.checkpoint = "step-00000007";
    manifest.step = 7;
    return write_checkpoint(folder_.string(), std::move(manifest), tensors_, options, progress_);
  }
  std::string files_of(const Manifest& manifest) const {
    std::string all;
    for (const ShardFile& file : manifest.files) all += file.name + " ";
    return all;
  }

  /// Expects every piece of the manifest in its file with the right bytes and checksums, and the files as the manifest lists them.
  void expect_as_written(const Manifest& manifest) const {
    for (const ShardFile& file : manifest.files) {
      const std::string content = content_of(file.name);
      EXPECT_EQ(static_cast<int64_t>(content.size()), file.bytes) << file.name;
      const auto bytes = std::as_bytes(std::span(content));
      EXPECT_EQ(crc32c(bytes.first(static_cast<size_t>(file.header_bytes))), file.header_crc) << file.name;
    }
    for (const LogicalTensor& tensor : manifest.tensors) {
      const auto& expected = values_.at(tensor.name);
      int64_t element = 0;
      for (const TensorPiece& piece : tensor.pieces) {
        EXPECT_EQ(piece.begin, element) << tensor.name;
        element = piece.end;
        const SafetensorsFile file((folder_ / manifest.files.at(static_cast<size_t>(piece.file)).name).string());
        const auto bytes = file.bytes(file.record(piece_name(tensor, piece)));
        const auto first = static_cast<size_t>(piece.begin * bytes_of(tensor.dtype));
        ASSERT_LE(first + bytes.size(), expected.size()) << tensor.name;
        EXPECT_EQ(std::memcmp(bytes.data(), expected.data() + first, bytes.size()), 0) << tensor.name;
        ASSERT_EQ(static_cast<int64_t>(piece.blocks.size()), block_count(static_cast<int64_t>(bytes.size()))) << tensor.name;
        for (size_t i = 0; i < piece.blocks.size(); ++i) {
          const auto block = bytes.subspan(i * kChecksumBlock);
          EXPECT_EQ(piece.blocks[i], crc32c(block.first(std::min<size_t>(block.size(), kChecksumBlock)))) << tensor.name;
        }
      }
      EXPECT_EQ(element, tensor.shape.elements()) << tensor.name;
    }
  }

  std::map<std::string, std::vector<std::byte>> values_;
  std::vector<WrittenTensor> tensors_;
  WriteProgress progress_;
  std::minstd_rand random_{1};
};

TEST_F(CheckpointWriter, WritesEachKindIntoAFileOfItsOwn) {
  add_some_of_each_kind();
  const Manifest manifest = write();
  EXPECT_EQ(files_of(manifest), "model.safetensors optimizer.safetensors tensors.safetensors ");
  expect_as_written(manifest);
  EXPECT_EQ(content_of(kManifestName), print_manifest(manifest));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 4);  // no other file
  EXPECT_EQ(progress_.done, manifest.bytes());
  EXPECT_EQ(progress_.all, manifest.bytes());
  const SafetensorsFile model((folder_ / "model.safetensors").string());
  EXPECT_EQ(model.record("none").shape, (Shape{0, 4}));  // stored for other tools, though it has no bytes
  EXPECT_EQ(model.header().metadata.at("format"), "pt");
}

TEST_F(CheckpointWriter, WritesNothingButAManifestOfNothing) {
  const Manifest manifest = write();
  EXPECT_EQ(files_of(manifest), "");
  EXPECT_EQ(content_of(kManifestName), print_manifest(manifest));
}

TEST_F(CheckpointWriter, ChecksumsEachBlockOfLargeTensors) {
  add("even", TensorKind::host, DType::u8, {2 << 20});
  add("odd", TensorKind::host, DType::u8, {(9 << 20) + 1}, true);  // two full copy windows and a partial one
  add("one", TensorKind::host, DType::f32, {1});
  const Manifest manifest = write();
  expect_as_written(manifest);
  EXPECT_EQ(manifest.find("odd")->pieces[0].blocks.size(), 10U);
}

TEST_F(CheckpointWriter, GivesCopiesWholeWindows) {
  constexpr int64_t kSize = 3 * ShardWriter::kCopyWindow / 2;
  std::vector<std::pair<int64_t, size_t>> windows;
  WrittenTensor tensor{"t", TensorKind::host, DType::u8, {kSize}, {}, {}};
  tensor.copy = [&](int64_t first, std::span<std::byte> out) { windows.emplace_back(first, out.size()); };
  tensors_.push_back(tensor);
  write();
  EXPECT_EQ(windows, (std::vector<std::pair<int64_t, size_t>>{{0, ShardWriter::kCopyWindow}, {ShardWriter::kCopyWindow, kSize / 3}}));
}

TEST_F(CheckpointWriter, CutsAModelIntoFilesAsHuggingFaceDoes) {
  for (const char* name : {"c", "b", "large", "a", "d"}) add(name, TensorKind::parameter, DType::f32, {*name == 'l' ? 100 : 10});
  const Manifest manifest = write({.file_bytes = 80, .bytes_per_second = 0});
  EXPECT_EQ(files_of(manifest),
            "model-00001-of-00003.safetensors model-00002-of-00003.safetensors model-00003-of-00003.safetensors "
            "model.safetensors.index.json ");
  expect_as_written(manifest);
  EXPECT_EQ(content_of("model.safetensors.index.json"),
            "{\"metadata\": {\"total_size\": 560},\n\"weight_map\": {\"a\": \"model-00001-of-00003.safetensors\",\n"
            "\"b\": \"model-00001-of-00003.safetensors\",\n\"c\": \"model-00002-of-00003.safetensors\",\n"
            "\"d\": \"model-00002-of-00003.safetensors\",\n\"large\": \"model-00003-of-00003.safetensors\"}}\n");
}

TEST_F(CheckpointWriter, WritesTheSameBytesInWhateverOrderTensorsAreGiven) {
  for (const char* name : {"c", "b", "a", "d", "e"}) add(name, TensorKind::optimizer, DType::f32, {10 + *name % 3});
  const auto write_all = [&] {
    renew();
    std::map<std::string, std::string> files;
    for (const ShardFile& file : write({.file_bytes = 100, .bytes_per_second = 0}).files) files[file.name] = content_of(file.name);
    return files;
  };
  const auto first = write_all();
  EXPECT_GT(first.size(), 1U);
  std::reverse(tensors_.begin(), tensors_.end());
  EXPECT_EQ(write_all(), first);
}

TEST_F(CheckpointWriter, WritesPiecesOfATensorIntoSeveralFiles) {
  add("t", TensorKind::parameter, DType::f32, {4, 6});
  Manifest manifest;
  manifest.training = Json::empty(Json::Kind::object);
  manifest.recipe = Json::empty(Json::Kind::object);
  manifest.tensors.push_back({"t", TensorKind::parameter, DType::f32, {4, 6}, {}});
  const auto bytes = [&](size_t begin, size_t end) {
    return std::span<const std::byte>(values_["t"]).subspan(begin * 4, (end - begin) * 4);
  };
  const std::vector<std::vector<ShardPiece>> shards{{{0, 0, 5, bytes(0, 5), {}}}, {{0, 5, 24, bytes(5, 24), {}}}};
  ShardWriter writer(0, progress_);
  write_shards(folder_.string(), manifest, TensorKind::parameter, shards, writer);
  commit_manifest(folder_.string(), manifest);
  expect_as_written(manifest);
  EXPECT_EQ(SafetensorsFile((folder_ / "model-00002-of-00002.safetensors").string()).record("t[5:24]").shape, Shape{19});
}

TEST_F(CheckpointWriter, RefusesTensorsThatItCannotTellApartOrThatLackBytes) {
  add("t", TensorKind::parameter, DType::f32, {1});
  add("t", TensorKind::optimizer, DType::f32, {1});
  EXPECT_THROW(write(), Error);
  tensors_.pop_back();
  tensors_[0].shape = {2};
  EXPECT_THROW(write(), Error);
  tensors_[0].bytes = {};
  EXPECT_THROW(write(), Error);  // neither bytes nor a copy function
  EXPECT_TRUE(fs::is_empty(folder_));
}

/// A call of the disk, in short: "fsync model", "rename manifest".
std::string told(const std::string& line) {
  const std::string call = line.substr(0, line.find(' '));
  const std::string path = line.substr(call.size() + 1, line.find(' ', call.size() + 1) - call.size() - 1);
  const std::string name = path.substr(path.rfind('/') + 1);
  return text(call, " ", name.starts_with("st_CheckpointWriter") ? "folder" : name.substr(0, name.find('.')));
}

TEST_F(CheckpointWriter, CommitsInAnOrderThatSurvivesAKill) {
  add_some_of_each_kind();
  failing_disk_watch(folder_.c_str(), log().c_str());
  write();
  failing_disk_watch(nullptr, nullptr);
  std::vector<std::string> calls;
  for (const std::string& line : lines_of_file(log()))
    if (calls.empty() || calls.back() != told(line)) calls.push_back(told(line));  // successive writes to a file count once
  EXPECT_EQ(calls, (std::vector<std::string>{"open model", "pwrite model", "fsync model", "open optimizer", "pwrite optimizer",
                                             "fsync optimizer", "open tensors", "pwrite tensors", "fsync tensors", "open manifest",
                                             "pwrite manifest", "fsync manifest", "fsync folder", "rename manifest", "fsync folder"}));
}

TEST_F(CheckpointWriter, SaysWhichCallOfTheDiskFailedAndLeavesNoManifest) {
  add_some_of_each_kind();
  const size_t before = open_files() + 1;  // the log
  int failures = 0;
  for (const auto& [call, reason] : {std::pair{"open", EACCES}, {"pwrite", ENOSPC}, {"fsync", EIO}, {"rename", EROFS}}) {
    for (int at = 1;; ++at) {
      renew();
      failing_disk_watch(folder_.c_str(), log().c_str());
      failing_disk_fail(call, std::to_string(at).c_str(), reason);
      const Error error = error_of([&] { write(); });
      if (error.code() == Code::ok) break;  // fewer than `at` such calls
      ++failures;
      EXPECT_TRUE(is_error(error, Code::io, {os::reason_of(reason), error.place.file}));
      EXPECT_TRUE(error.place.file.starts_with(folder_.string())) << error.message();
      EXPECT_EQ(error.place.offset >= 0, call == std::string("pwrite")) << error.message();
      const bool was_last = call == std::string("fsync") && at == 6;
      EXPECT_EQ(fs::exists(folder_ / kManifestName), was_last) << call << at;
      EXPECT_EQ(open_files(), before) << call << at;
    }
  }
  EXPECT_EQ(failures, 4 + 9 + 6 + 1);  // 3 shards and the manifest; 3 headers, 5 tensors, the manifest; 4 files, the folder twice
}

// fsync does not repeat an error that write-back has already reported.
TEST_F(CheckpointWriter, TakesAnErrorOfWritingBackForOneAndAFileSystemThatCannotForNone) {
  add("t", TensorKind::host, DType::u8, {9 << 20});
  failing_disk_watch(folder_.c_str(), nullptr);
  failing_disk_fail("sync_file_range", "1", EIO);
  const Error error = error_of([&] { write(); });
  EXPECT_TRUE(is_error(error, Code::io, {"Input/output error"}));
  EXPECT_EQ(error.place.tensor, "t");
  renew();
  failing_disk_fail("sync_file_range", "1+", EINVAL);
  expect_as_written(write());
}

TEST_F(CheckpointWriter, NamesTheTensorThatTheDiskDidNotTake) {
  add_some_of_each_kind();
  failing_disk_watch(folder_.c_str(), nullptr);
  failing_disk_fail("pwrite", "2", ENOSPC);
  const Error error = error_of([&] { write(); });
  EXPECT_TRUE(is_error(error, Code::io, {"layer.weight", "No space left"}));
  EXPECT_EQ(error.place.tensor, "layer.weight");
}

TEST_F(CheckpointWriter, SaysThatTheFolderIsGone) {
  add_some_of_each_kind();
  tensors_[3].copy = [&](int64_t, std::span<std::byte>) { fs::remove_all(folder_); };  // while it is written
  EXPECT_TRUE(is_error(error_of([&] { write(); }), Code::io, {"No such file"}));
}

TEST_F(CheckpointWriter, LetsTheErrorOfACopyThrough) {
  add_some_of_each_kind();
  tensors_[3].copy = [](int64_t, std::span<std::byte>) { fail(Code::callback, "the host says no"); };
  const size_t before = open_files();
  EXPECT_TRUE(is_error(error_of([&] { write(); }), Code::callback));
  EXPECT_EQ(open_files(), before);
}

TEST_F(CheckpointWriter, KeepsToItsCap) {
  add("t", TensorKind::host, DType::u8, {6 << 20});
  const double begin = os::seconds();
  write({.file_bytes = 1 << 30, .bytes_per_second = 20 << 20});
  const double took = os::seconds() - begin;
  EXPECT_GE(took, 0.2);  // 6 MiB at 20 MiB a second, less the last block's share and the start's credit
}

TEST_F(CheckpointWriter, EndsSoonWhenCancelledAlsoWhileItWaits) {
  add("t", TensorKind::host, DType::u8, {5 << 20}, true);
  double cancelled = 0;
  std::atomic<bool> is_cancelled{false};
  progress_.is_cancelled = [&] { return is_cancelled.load(); };
  std::thread other([&] {
    while (progress_.done == 0) std::this_thread::yield();
    cancelled = os::seconds();
    is_cancelled = true;
  });
  const auto slowly = [&] { write({.file_bytes = 1 << 30, .bytes_per_second = 100'000}); };  // 50 seconds
  EXPECT_TRUE(is_error(error_of(slowly), Code::cancelled));
  const double ended = os::seconds();
  other.join();
  EXPECT_LT(ended - cancelled, 2.0);  // about 20 ms on an idle machine
  EXPECT_FALSE(fs::exists(folder_ / kManifestName));
}

}  // namespace
}  // namespace st
