#include "checkpoint/sequential_file.h"

#include <algorithm>

#include "base/stream_copy.h"

namespace st {
namespace {

constexpr int64_t kDirectFrom = 16 << 20;
constexpr int64_t kWritebackBytes = 8 << 20, kUnderWay = 64 << 20;

}  // namespace

SequentialFile::SequentialFile(const std::string& path, int64_t size, WriteWindows& windows)
    : file_(path, os::OutputFile::Open::fresh), windows_(windows), is_direct_(size >= kDirectFrom && file_.go_direct()) {}

void SequentialFile::append(std::span<const std::byte> bytes) {
  if (!is_direct_) return append_through_cache(bytes);
  while (!bytes.empty()) {
    const auto filled = static_cast<size_t>(end_ % WriteWindows::kBytes);
    const std::span<std::byte> room = windows_.open().subspan(filled);
    const size_t count = std::min(bytes.size(), room.size());
    stream_copy(room.first(count), bytes.first(count));
    end_ += static_cast<int64_t>(count);
    bytes = bytes.subspan(count);
    if (count == room.size()) windows_.write(file_, end_ - WriteWindows::kBytes);
  }
}

void SequentialFile::append_through_cache(std::span<const std::byte> bytes) {
  file_.write_at(end_, bytes);
  end_ += static_cast<int64_t>(bytes.size());
  if (const int64_t full = end_ / kWritebackBytes * kWritebackBytes; full > begun_) {
    file_.start_writeback(begun_, full - begun_);
    begun_ = full;
  }
  for (; begun_ - written_ > kUnderWay; written_ += kWritebackBytes) file_.finish_writeback(written_, kWritebackBytes);
}

int64_t SequentialFile::finish() {
  if (is_direct_) windows_.finish();
  if (const int64_t rest = end_ % WriteWindows::kBytes; is_direct_ && rest > 0) {
    file_.go_through_cache();  // the rest need not be a multiple of the direct-I/O alignment
    file_.write_at(end_ - rest, windows_.open().first(static_cast<size_t>(rest)));
  }
  file_.sync();
  file_.close();
  return end_;
}

}  // namespace st
