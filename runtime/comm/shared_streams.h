// What a shared transport knows of its groups, their streams and the other ranks. Internal to it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "comm/shared_transport.h"

namespace st {

/// One group's stream to and from another rank.
struct SharedTransport::Stream {
  Group* group = nullptr;
  uint32_t number = 0;  // of the group at the other rank; known once it is open

  std::vector<std::span<const std::byte>> posted;
  size_t first = 0;
  bool is_borrowed = false;  // the transport sends elements from the poster's memory
  uint64_t sent = 0, taken_by_other = 0;

  std::unique_ptr<std::byte[]> ring;  // received elements: bytes [taken, arrived) of the stream
  uint64_t arrived = 0, taken = 0, acknowledged = 0;
  bool has_left = false;

  bool is_composed() const { return first == posted.size(); }
  void drop() noexcept {
    posted.clear();
    first = 0;
  }
};

struct SharedTransport::Group {
  std::map<int, Stream> streams;  // by rank of the transport
  bool has_news = false;          // since its last progress()
};

/// Another rank of the transport.
struct SharedTransport::Peer {
  std::unique_ptr<std::byte[]> out;  // frames, and copied elements: [0, posted) are in the transport, [posted, used) are not
  size_t posted = 0, used = 0;
  Stream* borrowed = nullptr;        // whose elements the transport sends from where they are
  std::vector<uint32_t> farewells;   // numbers of groups that this rank has left
  bool is_due = false;               // there may be something to compose
  uint32_t last = 0;                 // group that was served last
  uint64_t total = 0, elements = 0;  // bytes posted to the transport, and up to the last element
  uint64_t read_before = 0;          // by that rank, before the transport was shared
  bool has_left = false;

  std::array<std::byte, sizeof(Frame)> header{};
  size_t header_bytes = 0;
  uint64_t frame_left = 0;
  Stream* into = nullptr;  // null: elements of a group that this rank has left
};

}  // namespace st
