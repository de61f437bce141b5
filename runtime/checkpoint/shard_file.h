// One shard of a checkpoint: a durable safetensors file, and the checksums that the manifest keeps of it.
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

/// Shows the progress of a write to other threads, and lets its caller end it.
struct WriteProgress {
  std::atomic<int64_t> done{0}, all{0};  // bytes of tensors
  std::atomic<bool> is_urgent{false};    // a caller waits: ignore the cap from now on
  std::function<bool()> is_cancelled;    // polled by the writing thread, which then throws cancelled; empty: never
};

/// A tensor of a shard: its row-major bytes, borrowed, or a function that writes [first, first + out.size()) of them to `out`.
struct ShardTensor {
  TensorRecord record;                                                // the writer computes its offset
  std::span<const std::byte> bytes;                                   // empty: use copy
  std::function<void(int64_t first, std::span<std::byte> out)> copy;  // `first` and all sizes except the last: multiples of kCopyWindow
};

/// A manifest's record of a written shard.
struct WrittenShard {
  int64_t bytes = 0, header_bytes = 0;
  uint32_t header_crc = 0;
  std::vector<std::vector<uint32_t>> blocks;  // by tensor, in the order given: CRC32C of each kChecksumBlock bytes
  std::vector<bool> finite;                   // by tensor: none of its numbers is NaN or infinite
};

/// Writes the files of one checkpoint, one after the other; the cap applies to all of them together.
class ShardWriter {
 public:
  static constexpr int64_t kCopyWindow = 4 * kChecksumBlock;

  /// 0 bytes a second: no cap. Borrows `progress` for its lifetime.
  ShardWriter(double bytes_per_second, WriteProgress& progress) : bytes_per_second_(bytes_per_second), progress_(progress) {}

  /// Creates `path`, which must not exist, and returns when it is on the disk. Throws io with path, offset, reason and tensor; cancelled;
  /// and what `copy` throws. After an error the partial file remains.
  WrittenShard write(const std::string& path, std::span<const ShardTensor> tensors, Metadata metadata);
  /// Writes a file that is not safetensors: all of it counts as header.
  WrittenShard write_text(const std::string& path, std::string_view text);

 private:
  /// Returns whether its numbers are finite.
  bool write_tensor(SequentialFile& output, const ShardTensor& tensor, std::vector<uint32_t>& blocks);
  void wait_for_turn(int64_t bytes);

  double bytes_per_second_;
  WriteProgress& progress_;
  double next_ = 0;  // os::seconds() from which the cap allows the next write
  os::Pages copy_;   // the window for ShardTensor::copy
  WriteWindows windows_;
};

}  // namespace st
