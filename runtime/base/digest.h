// XXH3, 128 bits, streamed (xxhash.com, format frozen since 0.8.0): the hash of states, jobs and plans. Not for secrets.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace st {

class Digest {
 public:
  Digest();
  ~Digest();
  Digest(Digest&&) noexcept;
  Digest& operator=(Digest&&) noexcept;

  void update(std::span<const std::byte> bytes);
  /// The characters only. For consecutive texts use update_sized(), which distinguishes "ab","c" from "a","bc".
  void update(std::string_view text);
  void update_sized(std::string_view text);

  /// 32 digits, the canonical (big-endian) form that `xxhsum -H2` prints. update() may follow.
  std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace st
