// Pages of memory, anonymous or backed by a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace st::os {

/// Page-aligned, zeroed memory from the OS, anonymous or file-backed. Throws out_of_memory with the requested and the available size.
class Pages {
 public:
  Pages() = default;
  explicit Pages(int64_t bytes);
  /// Backed by an unnamed file in `folder`, to which the system writes what does not fit in memory. Disk space is reserved here; the file
  /// disappears with the process. Throws io with folder, required and free size.
  Pages(int64_t bytes, const std::string& folder);
  /// Makes these pages file-backed, at the same address with the same contents. No thread may write them meanwhile. Nothing changes on
  /// error.
  void move_to_file(const std::string& folder);
  ~Pages();
  Pages(Pages&& other) noexcept;
  Pages& operator=(Pages&& other) noexcept;
  Pages(const Pages&) = delete;
  std::byte* data() const { return data_; }
  int64_t size() const { return size_; }

 private:
  std::byte* data_ = nullptr;
  int64_t size_ = 0;
};

}  // namespace st::os
