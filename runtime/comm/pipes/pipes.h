// Bytes between ranks that others carry: a plug-in for clusters, or the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace st {

/// One rank's pipes to the others. Calls return at once and come one at a time, but from several threads.
class Pipes {
 public:
  virtual ~Pipes() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::string_view name() const = 0;

  /// Takes what it can for `to`, behind what it took before; how many bytes. Throws an Error where that rank can be reached no more: its
  /// message is the reason.
  virtual int64_t write(int to, std::span<const std::byte> bytes) = 0;
  /// Gives what has come from `from`; how many bytes. Throws as write() does.
  virtual int64_t read(int from, std::span<std::byte> bytes) = 0;
};

}  // namespace st
