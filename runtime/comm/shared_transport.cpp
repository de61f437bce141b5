#include "comm/shared_transport.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>

#include "base/os/machine.h"
#include "base/vector_copy.h"
#include "comm/shared_streams.h"

namespace st {
namespace {

constexpr size_t kCopied = (16 << 10) + 128;  // the longest range that is copied: the longest send that returns at once, and its header
constexpr double kLongestSleep = 0.05;        // seconds

uint64_t ring_bytes_of(int ranks) {
  constexpr uint64_t kMost = 256 << 10, kLeast = 32 << 10, kAll = 16 << 20;
  uint64_t window = kMost;
  while (window > kLeast && window * static_cast<uint64_t>(ranks) > kAll) window /= 2;
  return window;
}

}  // namespace

SharedTransport::SharedTransport(Transport& transport, double patience)
    : transport_(transport),
      patience_(patience),
      window_(ring_bytes_of(transport_.size())),
      out_bytes_(std::clamp<size_t>(window_, 40 << 10, 64 << 10)),
      peers_(static_cast<size_t>(transport_.size())) {
  for (int rank = 0; rank < transport_.size(); ++rank) peers_[static_cast<size_t>(rank)].read_before = transport_.read_by(rank);
  for (const uint32_t number : {kWhole, kFirst}) groups_.emplace(number, std::make_unique<Group>());
}

SharedTransport::~SharedTransport() {
  const double end = os::seconds() + patience_;
  for (int other = 0; other < transport_.size() && !is_over_; ++other)
    while (!is_delivered(other) && !transport_.has_left(other) && !transport_.failure() && os::seconds() < end)
      if (!pump()) transport_.idle(kLongestSleep);
  transport_.withdraw();  // copied elements are freed after this
}

int64_t SharedTransport::bytes_of_group(int size, int all) { return (size - 1) * static_cast<int64_t>(ring_bytes_of(all)); }

uint32_t SharedTransport::reserve() {
  const std::lock_guard lock(mutex_);
  groups_.emplace(next_number_, std::make_unique<Group>());
  return next_number_++;
}

void SharedTransport::release(uint32_t group) noexcept {
  const std::lock_guard lock(mutex_);
  groups_.erase(group);
}

SharedTransport::Stream& SharedTransport::stream(Group& group, int rank) {
  Stream& found = group.streams[rank];
  found.group = &group;
  return found;
}

// Out.

/// Null if there is no room now.
std::byte* SharedTransport::room_in(Peer& peer, size_t bytes) {
  if (!peer.out) peer.out = std::make_unique_for_overwrite<std::byte[]>(out_bytes_);
  if (out_bytes_ - peer.used < bytes) return nullptr;
  return peer.out.get() + std::exchange(peer.used, peer.used + bytes);
}

/// Once per quarter of the window: the other rank has room until then.
bool SharedTransport::is_credit_due(const Stream& stream) const {
  return stream.taken - stream.acknowledged >= window_ / 4 && !stream.has_left;
}

void SharedTransport::reclaim(int to, Peer& peer) {
  if (peer.posted == 0 || !transport_.is_sent(to)) return;
  std::memmove(peer.out.get(), peer.out.get() + peer.posted, peer.used - peer.posted);
  peer.used -= std::exchange(peer.posted, 0);
  if (Stream* borrowed = std::exchange(peer.borrowed, nullptr)) {
    borrowed->is_borrowed = false;
    borrowed->group->has_news = true;
  }
}

void SharedTransport::post_composed(int to, Peer& peer) {
  if (peer.used == peer.posted) return;
  transport_.post(to, {peer.out.get() + peer.posted, peer.used - peer.posted});
  peer.total += peer.used - peer.posted;
  peer.posted = peer.used;
}

/// Composes one frame of this stream; returns whether it could.
bool SharedTransport::compose(int to, Peer& peer, Stream& stream) {
  const uint64_t credit = stream.has_left ? 0 : window_ - (stream.sent - stream.taken_by_other);
  uint64_t bytes = 0;
  bool is_long = false;
  if (!stream.is_composed() && credit > 0 && !stream.is_borrowed) {
    const uint64_t next = stream.posted[stream.first].size(), free = out_bytes_ - peer.used;
    is_long = next > kCopied;
    bytes = std::min(next, credit);
    if (is_long ? peer.borrowed != nullptr : free < sizeof(Frame) + bytes) bytes = 0;  // later
  }
  if (bytes == 0 && !is_credit_due(stream)) return false;
  std::byte* const header = room_in(peer, sizeof(Frame));
  if (header == nullptr) return false;
  const Frame frame{stream.number, static_cast<uint32_t>(bytes), stream.acknowledged = stream.taken};
  std::memcpy(header, &frame, sizeof frame);
  if (bytes == 0) return true;
  auto& next = stream.posted[stream.first];
  if (is_long) {
    post_composed(to, peer);
    transport_.post(to, next.first(bytes));
    peer.total += bytes;
    peer.elements = peer.total;
    peer.borrowed = &stream;
    stream.is_borrowed = true;
  } else {
    std::memcpy(room_in(peer, bytes), next.data(), bytes);
    peer.elements = peer.total + (peer.used - peer.posted);
  }
  stream.sent += bytes;
  next = next.subspan(bytes);
  if (next.empty() && ++stream.first == stream.posted.size()) stream.drop();  // keeps its memory for the next time
  stream.group->has_news = true;
  return true;
}

/// Sends what can be sent to that rank: the groups in turn.
void SharedTransport::flush(int to) {
  Peer& peer = peers_[static_cast<size_t>(to)];
  if (is_over_ || (!peer.is_due && peer.borrowed == nullptr)) return;
  reclaim(to, peer);
  while (!peer.farewells.empty()) {
    std::byte* const place = room_in(peer, sizeof(Frame));
    if (place == nullptr) break;
    const Frame frame{peer.farewells.back(), kLeft, 0};
    std::memcpy(place, &frame, sizeof frame);
    peer.farewells.pop_back();
  }
  for (bool has_more = true; has_more;) {
    has_more = false;
    auto next = groups_.upper_bound(peer.last);
    for (size_t i = 0; i < groups_.size(); ++i, ++next) {
      if (next == groups_.end()) next = groups_.begin();
      const auto found = next->second->streams.find(to);
      if (found == next->second->streams.end() || !compose(to, peer, found->second)) continue;
      peer.last = next->first;
      has_more = true;
    }
  }
  post_composed(to, peer);
  peer.is_due = !peer.farewells.empty();
  for (const auto& [number, group] : groups_)
    if (const auto found = group->streams.find(to); found != group->streams.end())
      peer.is_due = peer.is_due || !found->second.is_composed() || is_credit_due(found->second);
}

/// For a change made within a group's call.
void SharedTransport::flush_soon(int to) {
  peers_[static_cast<size_t>(to)].is_due = true;
  if (is_idling_)
    transport_.wake();  // that thread flushes
  else
    flush(to);
}

// In.

bool SharedTransport::pull(int from) {
  Peer& peer = peers_[static_cast<size_t>(from)];
  for (bool moved = false;; moved = true) {
    if (is_over_) return moved;
    const auto bytes = transport_.arrived(from);
    if (bytes.empty()) return moved;
    size_t count = bytes.size();
    if (peer.frame_left == 0) {
      count = std::min(count, sizeof(Frame) - peer.header_bytes);
      std::memcpy(peer.header.data() + peer.header_bytes, bytes.data(), count);
      peer.header_bytes += count;
      if (peer.header_bytes == sizeof(Frame)) understand(from, peer);
    } else {
      count = std::min(count, peer.frame_left);
      if (Stream* const into = peer.into) {
        const uint64_t at = into->arrived & (window_ - 1);
        count = std::min(count, window_ - at);
        vector_copy(into->ring.get() + at, bytes.data(), count);
        into->arrived += count;
        into->group->has_news = true;
      }
      peer.frame_left -= count;
    }
    transport_.take(from, static_cast<int64_t>(count));
  }
}

void SharedTransport::understand(int from, Peer& peer) {
  Frame frame;
  std::memcpy(&frame, peer.header.data(), sizeof frame);
  peer.header_bytes = 0;
  const auto refuse = [&](const char* what) {
    transport_.abort({from, Code::rank_failed, std::string(what) + ": another version of the library, or damaged bytes"});
    is_over_ = true;
  };
  if (frame.group >= next_number_) return refuse("it sent a frame of an unknown group");
  const auto found = groups_.find(frame.group);
  peer.into = nullptr;
  if (found != groups_.end()) {
    Stream& to = stream(*found->second, from);
    to.group->has_news = true;
    if (frame.bytes == kLeft) {
      to.has_left = true;
      return;
    }
    if (frame.taken > to.sent || frame.taken < to.taken_by_other) return refuse("it acknowledged bytes that were never sent");
    if (frame.bytes > window_ - (to.arrived - to.taken)) return refuse("it sent more bytes than its window allows");
    peer.is_due = peer.is_due || frame.taken != to.taken_by_other;
    to.taken_by_other = frame.taken;
    if (frame.bytes > 0 && !to.ring) to.ring = std::make_unique_for_overwrite<std::byte[]>(window_);
    peer.into = &to;
  }
  peer.frame_left = frame.bytes == kLeft ? 0 : frame.bytes;
}

/// Moves what can be moved in both directions; returns whether anything did.
bool SharedTransport::pump() {
  const int ranks = transport_.size();
  leaving_.clear();
  for (int rank = 0; rank < ranks; ++rank)
    if (!peers_[static_cast<size_t>(rank)].has_left && transport_.has_left(rank)) leaving_.push_back(rank);
  bool moved = transport_.progress();
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank == transport_.rank()) continue;
    moved = pull(rank) || moved;
    flush(rank);
  }
  for (const int rank : leaving_) peers_[static_cast<size_t>(rank)].has_left = true;  // now all that it sent has been read
  return moved;
}

// Waits.

void SharedTransport::idle(Group& group, std::unique_lock<std::mutex>& lock, double seconds) {
  if (group.has_news || is_over_) return;
  if (is_idling_) {
    ++waiters_;
    changed_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return group.has_news || !is_idling_; });
    --waiters_;
    return;
  }
  is_idling_ = true;
  lock.unlock();
  transport_.idle(seconds);
  lock.lock();
  is_idling_ = false;
  pump();
  if (!failure_) failure_ = transport_.failure();
  if (waiters_ > 0) changed_.notify_all();
}

// Ends.

/// No rank reads the group's memory after it returns: if one still may, all groups end.
void SharedTransport::withdraw(Group& group, std::unique_lock<std::mutex>& lock) noexcept {
  const bool is_borrowed = std::ranges::any_of(group.streams, [](const auto& stream) { return stream.second.is_borrowed; });
  for (auto& [rank, stream] : group.streams) stream.drop();
  if (!is_borrowed) return;
  is_over_ = true;                                                            // frames may have been cut
  transport_.abort({transport_.rank(), Code::rank_failed, "it has failed"});  // short enough not to allocate
  for (++waiters_; is_idling_; changed_.wait(lock)) transport_.wake();
  --waiters_;
  transport_.withdraw();
  for (Peer& peer : peers_)
    if (Stream* const borrowed = std::exchange(peer.borrowed, nullptr)) borrowed->is_borrowed = false;
}

void SharedTransport::leave(uint32_t number) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = groups_.find(number);
  for (auto& [rank, stream] : found->second->streams) {
    Peer& peer = peers_[static_cast<size_t>(rank)];
    if (peer.into == &stream) peer.into = nullptr;
    if (!stream.has_left) peer.farewells.push_back(stream.number);  // has room
  }
  const std::unique_ptr<Group> left = std::move(found->second);
  groups_.erase(found);
  try {
    for (const auto& [rank, stream] : left->streams) flush_soon(rank);
  } catch (const std::bad_alloc&) {  // the farewell waits for this rank's next call
  }
}

/// Whether that rank has all elements of this one; frames without elements do not matter.
bool SharedTransport::is_delivered(int to) const {
  const Peer& peer = peers_[static_cast<size_t>(to)];
  return peer.elements == 0 || transport_.is_sent(to) || transport_.read_by(to) - peer.read_before >= peer.elements;
}

}  // namespace st
