// Byte pipes between ranks, provided by a plug-in for clusters or by the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace st {

/// One rank's pipes to the others. Calls return at once. They are made one at a time, but from several threads.
class Pipes {
 public:
  virtual ~Pipes() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::string_view name() const = 0;

  /// Appends as many bytes as it can to the pipe to that rank; returns how many. Throws an Error if that rank is unreachable: its message
  /// is the reason.
  virtual int64_t write(int to, std::span<const std::byte> bytes) = 0;
  /// Reads bytes that have arrived from that rank; returns how many. Throws as write() does.
  virtual int64_t read(int from, std::span<std::byte> bytes) = 0;
};

}  // namespace st
