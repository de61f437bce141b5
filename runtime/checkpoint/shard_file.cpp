#include "checkpoint/shard_file.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/os/machine.h"
#include "checkpoint/finite_bytes.h"

namespace st {
namespace {

// Small enough that the system call copies from the cache what the checksum has just read.
constexpr size_t kCachedPiece = 256 << 10;
static_assert(kChecksumBlock % kCachedPiece == 0);
constexpr double kGrace = 0.05;      // seconds that a delayed writer may catch up
constexpr double kLookEvery = 0.02;  // seconds between two polls of is_cancelled

/// Runs call(); adds the tensor to its errors.
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

/// Indices into `tensors`, in the order of the file.
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

void ShardWriter::wait_for_turn(int64_t bytes) {
  for (;;) {
    require(!progress_.is_cancelled || !progress_.is_cancelled(), Code::cancelled, "checkpoint: the save was cancelled after ",
            progress_.done.load(), " of ", progress_.all.load(), " bytes");
    if (bytes_per_second_ <= 0 || progress_.is_urgent) return;
    const double now = os::seconds();
    if (now >= next_) {
      next_ = std::max(next_, now - kGrace) + static_cast<double>(bytes) / bytes_per_second_;
      return;
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(std::min(next_ - now, kLookEvery)));
  }
}

bool ShardWriter::write_tensor(SequentialFile& output, const ShardTensor& tensor, std::vector<uint32_t>& blocks) {
  const int64_t size = tensor.record.bytes();
  bool finite = true;
  blocks.reserve(static_cast<size_t>((size + kChecksumBlock - 1) / kChecksumBlock));
  for (int64_t first = 0; first < size;) {
    std::span<const std::byte> window = tensor.bytes;
    if (window.empty()) {
      if (copy_.size() == 0) copy_ = os::Pages(kCopyWindow);
      const std::span<std::byte> copy{copy_.data(), static_cast<size_t>(std::min(kCopyWindow, size - first))};
      tensor.copy(first, copy);
      window = copy;
    }
    for (size_t done = 0; done < window.size(); done += kCachedPiece) {
      const auto piece = window.subspan(done, std::min(kCachedPiece, window.size() - done));
      wait_for_turn(static_cast<int64_t>(piece.size()));
      if ((first + static_cast<int64_t>(done)) % kChecksumBlock == 0) blocks.push_back(0);
      blocks.back() = crc32c(piece, blocks.back());
      finite = finite && are_finite(tensor.record.dtype, piece);
      naming(tensor.record.name, [&] { output.append(piece); });
      progress_.done += static_cast<int64_t>(piece.size());
    }
    first += static_cast<int64_t>(window.size());
  }
  return finite;
}

WrittenShard ShardWriter::write(const std::string& path, std::span<const ShardTensor> tensors, Metadata metadata) {
  std::vector<TensorRecord> records;
  for (const ShardTensor& tensor : tensors) {
    const int64_t size = tensor.record.bytes();
    check(tensor.bytes.empty() ? size == 0 || tensor.copy : static_cast<int64_t>(tensor.bytes.size()) == size,
          "checkpoint: ", tensor.record.name, " ", tensor.record.shape, " needs ", size, " bytes, got ", tensor.bytes.size());
    records.push_back(tensor.record);
  }
  const SafetensorsHeader header = arrange(std::move(records), std::move(metadata));
  const std::string head = print_header(header);
  const auto head_bytes = std::as_bytes(std::span(head));

  WrittenShard written{0, static_cast<int64_t>(head.size()), crc32c(head_bytes), std::vector<std::vector<uint32_t>>(tensors.size()),
                       std::vector<bool>(tensors.size(), true)};
  SequentialFile output(path, static_cast<int64_t>(head.size()) + header.data_bytes, windows_);
  wait_for_turn(written.header_bytes);
  output.append(head_bytes);
  for (const size_t i : order_of(header, tensors)) written.finite[i] = write_tensor(output, tensors[i], written.blocks[i]);
  written.bytes = output.finish();
  return written;
}

WrittenShard ShardWriter::write_text(const std::string& path, std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  const auto size = static_cast<int64_t>(bytes.size());
  SequentialFile output(path, size, windows_);
  wait_for_turn(size);
  output.append(bytes);
  output.finish();
  return {size, size, crc32c(bytes), {}, {}};
}

}  // namespace st
