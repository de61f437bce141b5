// One shard of a checkpoint: a safetensors file, durable when it is written, and what the manifest guards it with.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/os/pages.h"
#include "checkpoint/manifest.h"
#include "checkpoint/sequential_file.h"
#include "checkpoint/write_windows.h"

namespace st {

/// For other threads to look at, and for its caller to end it.
struct WriteProgress {
  std::atomic<int64_t> done{0}, all{0};  // bytes of tensors
  std::atomic<bool> is_urgent{false};    // somebody waits: no cap from here on
  std::function<bool()> is_cancelled;    // asked by the thread that writes: then it ends with Code::cancelled. Empty: never
};

/// A tensor of a shard: its row-major bytes where they lie, or from a function that writes [first, first + out.size()) of them.
struct ShardTensor {
  TensorRecord record;                                                // its offset is found by the writer
  std::span<const std::byte> bytes;                                   // empty: copy gives them
  std::function<void(int64_t first, std::span<std::byte> out)> copy;  // `first` is a multiple of kCopyWindow; so are all but the last size
};

/// What a manifest keeps of a shard that has been written.
struct WrittenShard {
  int64_t bytes = 0, header_bytes = 0;
  uint32_t header_crc = 0;
  std::vector<std::vector<uint32_t>> blocks;  // by tensor, in the order given: CRC32C of each kChecksumBlock bytes
  std::vector<bool> finite;                   // by tensor: none of its numbers is NaN or infinite
};

/// Writes the files of one checkpoint, one after the other: all of them together keep to the cap.
class ShardWriter {
 public:
  static constexpr int64_t kCopyWindow = 4 * kChecksumBlock;

  /// 0 bytes a second: no cap. `progress` stays the caller's.
  ShardWriter(double bytes_per_second, WriteProgress& progress) : bytes_per_second_(bytes_per_second), progress_(progress) {}

  /// Makes `path`, which must not be there, and returns when it is on the disk. Throws io with path, offset, reason and tensor, cancelled,
  /// and what `copy` throws; what there is of the file stays.
  WrittenShard write(const std::string& path, std::span<const ShardTensor> tensors, Metadata metadata);
  /// A file that is no safetensors: all of it is header.
  WrittenShard write_text(const std::string& path, std::string_view text);

 private:
  /// Returns whether its numbers are finite.
  bool write_tensor(SequentialFile& output, const ShardTensor& tensor, std::vector<uint32_t>& blocks);
  void wait_for_turn(int64_t bytes);

  double bytes_per_second_;
  WriteProgress& progress_;
  double next_ = 0;  // when the cap allows the next piece, as os::seconds()
  os::Pages copy_;   // what ShardTensor::copy fills
  WriteWindows windows_;
};

}  // namespace st
