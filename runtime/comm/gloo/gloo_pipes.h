// A rank's pipes to the others over Gloo: byte rings that each rank writes into the other's memory.
#pragma once

#include <scaletrain/transport.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "comm/gloo/tcp_rendezvous.h"

namespace st::plugin {

class GlooPipes {
 public:
  /// Finds the other ranks at the host and port, and connects to each of them. Throws Refusal.
  explicit GlooPipes(const st_plugin_start& start);
  ~GlooPipes();
  GlooPipes(const GlooPipes&) = delete;
  GlooPipes& operator=(const GlooPipes&) = delete;

  int rank() const { return place_.rank; }
  int size() const { return place_.size; }

  // As in st_transport_callbacks. Throws what Gloo throws if the other rank is unreachable.
  int64_t write(int to, std::span<const std::byte> bytes);
  int64_t read(int from, std::span<std::byte> bytes);

 private:
  struct Mesh;
  class Pipe;
  const RendezvousPoint place_;
  std::unique_ptr<Mesh> mesh_;
  std::vector<std::unique_ptr<Pipe>> pipes_;  // null for this rank
};

}  // namespace st::plugin
