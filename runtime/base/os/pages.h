// Pages of memory, anonymous or backed by a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace st::os {

/// Memory straight from the OS, page-aligned and zero: anonymous, or a file's. Throws out_of_memory with the size asked for and what there
/// is.
class Pages {
 public:
  Pages() = default;
  explicit Pages(int64_t bytes);
  /// Of a file without a name in `folder`, whose room on the disk is reserved here: gone with the process, however that ends. The system
  /// writes to it what memory has no room for. Throws io with folder, need and what is free there.
  Pages(int64_t bytes, const std::string& folder);
  /// Such ones from here on, at the same address with the same bytes. Nobody writes them meanwhile; what throws has changed nothing.
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
