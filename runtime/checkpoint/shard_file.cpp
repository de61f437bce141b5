#include "checkpoint/shard_file.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/file_access.h"
#include "base/stream_copy.h"

namespace st {
namespace {

// Small enough that the system copies from the cache what the checksum has just read.
constexpr size_t kCachedPiece = 256 << 10;
static_assert(kChecksumBlock % kCachedPiece == 0);
constexpr int64_t kWritebackBytes = 8 << 20, kUnderWay = 64 << 20;
constexpr double kGrace = 0.05;      // seconds that a writer who was held up may catch up
constexpr double kLookEvery = 0.02;  // seconds between two looks at whether it is cancelled

/// Runs call(); what the disk says then tells whose bytes they were.
template <class Call>
void naming(const std::string& tensor, const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    Error named(error.code(), text(error.message(), ", in tensor ", tensor));
    named.place = error.place;
    named.place.tensor = tensor;
    throw named;
  }
}

/// For each tensor as the file orders them, which of `tensors` it is.
std::vector<size_t> order_of(const SafetensorsHeader& header, std::span<const ShardTensor> tensors) {
  std::vector<size_t> by_name(tensors.size()), order;
  for (size_t i = 0; i < by_name.size(); ++i) by_name[i] = i;
  std::sort(by_name.begin(), by_name.end(), [&](size_t a, size_t b) { return tensors[a].record.name < tensors[b].record.name; });
  for (const TensorRecord& record : header.tensors)
    order.push_back(*std::lower_bound(by_name.begin(), by_name.end(), record.name,
                                      [&](size_t i, const std::string& name) { return tensors[i].record.name < name; }));
  return order;
}

}  // namespace

/// A file that grows from its beginning. A large one is written past the page cache where that is possible: through it, the system's copy
/// takes a training step as much time as the disk takes.
class ShardWriter::Output {
 public:
  /// `window` is memory for kDirectWindow bytes, made when it is first needed.
  Output(const std::string& path, int64_t size, os::Pages& window) : file_(path, os::OutputFile::Open::fresh), window_(window) {
    is_direct_ = size >= kDirectFrom && file_.go_direct();
    if (is_direct_ && window_.size() == 0) window_ = os::Pages(kDirectWindow);
  }

  void append(std::span<const std::byte> bytes) {
    if (!is_direct_) return append_through_cache(bytes);
    while (!bytes.empty()) {
      const int64_t filled = end_ % kDirectWindow;
      const size_t count = std::min(bytes.size(), static_cast<size_t>(kDirectWindow - filled));
      stream_copy({window_.data() + filled, count}, bytes.first(count));
      end_ += static_cast<int64_t>(count);
      bytes = bytes.subspan(count);
      if (end_ % kDirectWindow == 0) file_.write_at(end_ - kDirectWindow, {window_.data(), static_cast<size_t>(kDirectWindow)});
    }
  }
  /// How many bytes there are, all of them on the disk.
  int64_t finish() {
    if (const int64_t rest = end_ % kDirectWindow; is_direct_ && rest > 0) {
      file_.go_through_cache();  // the end of a file is seldom a multiple of anything
      file_.write_at(end_ - rest, {window_.data(), static_cast<size_t>(rest)});
    }
    file_.sync();
    file_.close();
    return end_;
  }

 private:
  static constexpr int64_t kDirectFrom = 16 << 20, kDirectWindow = 8 << 20;
  static_assert(kDirectWindow % os::OutputFile::kDirectAlign == 0);

  void append_through_cache(std::span<const std::byte> bytes) {
    file_.write_at(end_, bytes);
    end_ += static_cast<int64_t>(bytes.size());
    if (const int64_t full = end_ / kWritebackBytes * kWritebackBytes; full > begun_) {
      file_.start_writeback(begun_, full - begun_);
      begun_ = full;
    }
    for (; begun_ - written_ > kUnderWay; written_ += kWritebackBytes) file_.finish_writeback(written_, kWritebackBytes);
  }

  os::OutputFile file_;
  os::Pages& window_;
  bool is_direct_ = false;
  int64_t end_ = 0, begun_ = 0, written_ = 0;  // what there is, what is on its way to the disk, what has arrived
};

void ShardWriter::wait_for_turn(int64_t bytes) {
  for (;;) {
    require(!progress_.is_cancelled || !progress_.is_cancelled(), Code::cancelled, "checkpoint: the save was cancelled, ",
            progress_.done.load(), " of ", progress_.all.load(), " bytes were written");
    if (bytes_per_second_ <= 0 || progress_.is_urgent) return;
    const double now = os::seconds();
    if (now >= next_) {
      next_ = std::max(next_, now - kGrace) + static_cast<double>(bytes) / bytes_per_second_;
      return;
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(std::min(next_ - now, kLookEvery)));
  }
}

void ShardWriter::write_tensor(Output& output, const ShardTensor& tensor, std::vector<uint32_t>& blocks) {
  const int64_t size = tensor.record.bytes();
  blocks.reserve(static_cast<size_t>((size + kChecksumBlock - 1) / kChecksumBlock));
  for (int64_t first = 0; first < size;) {
    std::span<const std::byte> window = tensor.bytes;
    if (window.empty()) {
      if (window_.size() == 0) window_ = os::Pages(kCopyWindow);
      const std::span<std::byte> copy{window_.data(), static_cast<size_t>(std::min(kCopyWindow, size - first))};
      tensor.copy(first, copy);
      window = copy;
    }
    for (size_t done = 0; done < window.size(); done += kCachedPiece) {
      const auto piece = window.subspan(done, std::min(kCachedPiece, window.size() - done));
      wait_for_turn(static_cast<int64_t>(piece.size()));
      if ((first + static_cast<int64_t>(done)) % kChecksumBlock == 0) blocks.push_back(0);
      blocks.back() = crc32c(piece, blocks.back());
      naming(tensor.record.name, [&] { output.append(piece); });
      progress_.done += static_cast<int64_t>(piece.size());
    }
    first += static_cast<int64_t>(window.size());
  }
}

WrittenShard ShardWriter::write(const std::string& path, std::span<const ShardTensor> tensors, Metadata metadata) {
  std::vector<TensorRecord> records;
  for (const ShardTensor& tensor : tensors) {
    const int64_t size = tensor.record.bytes();
    check(tensor.bytes.empty() ? size == 0 || tensor.copy : static_cast<int64_t>(tensor.bytes.size()) == size,
          "checkpoint: ", tensor.record.name, " ", tensor.record.shape, " has ", size, " bytes, ", tensor.bytes.size(), " were given");
    records.push_back(tensor.record);
  }
  const SafetensorsHeader header = arrange(std::move(records), std::move(metadata));
  const std::string head = print_header(header);
  const auto head_bytes = std::as_bytes(std::span(head));

  WrittenShard written{0, static_cast<int64_t>(head.size()), crc32c(head_bytes), std::vector<std::vector<uint32_t>>(tensors.size())};
  Output output(path, static_cast<int64_t>(head.size()) + header.data_bytes, direct_window_);
  wait_for_turn(written.header_bytes);
  output.append(head_bytes);
  for (const size_t i : order_of(header, tensors)) write_tensor(output, tensors[i], written.blocks[i]);
  written.bytes = output.finish();
  return written;
}

WrittenShard ShardWriter::write_text(const std::string& path, std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  const auto size = static_cast<int64_t>(bytes.size());
  Output output(path, size, direct_window_);
  wait_for_turn(size);
  output.append(bytes);
  output.finish();
  return {size, size, crc32c(bytes), {}};
}

}  // namespace st
