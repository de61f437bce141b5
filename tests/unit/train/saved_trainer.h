// A trainer's checkpoint in a folder of the test.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/json.h"
#include "checkpoint/checkpoint_writer.h"
#include "train/resume.h"
#include "train/trainer_state.h"
#include "training.h"

namespace st {

/// An empty folder that is removed with this object.
class ScratchFolder {
 public:
  explicit ScratchFolder(const std::string& name) : path_(::testing::TempDir() + name + "." + std::to_string(getpid())) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~ScratchFolder() { std::filesystem::remove_all(path_); }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

inline Manifest manifest_of(const CheckpointContent& content) {
  Manifest manifest;
  manifest.checkpoint = "step-" + std::to_string(content.step);
  manifest.step = content.step;
  manifest.training = parse_json(content.training, "training");
  manifest.recipe = parse_json(content.recipe, "recipe");
  manifest.metadata = content.metadata;
  return manifest;
}

/// Saves into `folder`, which it creates.
inline void save(const CheckpointContent& content, const std::string& folder, int64_t file_bytes = int64_t{1} << 30) {
  std::filesystem::create_directories(folder);
  std::vector<WrittenTensor> tensors;
  for (const SnapshotTensor& tensor : content.tensors) {
    WrittenTensor written;
    written.name = tensor.name;
    written.kind = tensor.kind;
    written.dtype = tensor.dtype;
    written.shape = tensor.shape;
    written.copy = tensor.copy;
    tensors.push_back(std::move(written));
  }
  WriteOptions options;
  options.file_bytes = file_bytes;
  WriteProgress progress;
  write_checkpoint(folder, manifest_of(content), tensors, options, progress);
}

inline void save(const Trainer& trainer, const std::string& folder) { save(content_of(trainer, {}), folder); }

inline ResumeReport resume_from(const std::string& folder, Trainer& trainer, const ReadOptions& options = {}) {
  ResumeReport report;
  resume(trainer, CheckpointReader(folder), options, report);
  return report;
}

/// Changes one byte, `from_end` bytes before the end.
inline void flip_byte(const std::string& path, int64_t from_end) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(-from_end, std::ios::end);
  const int byte = file.get();
  file.seekp(-from_end, std::ios::end);
  file.put(static_cast<char>(byte ^ 1));
}

}  // namespace st
