#include "comm/gloo/gloo_pipes.h"

#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/buffer.h>
#include <gloo/transport/pair.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <utility>

#include "comm/gloo/pipe_signal.h"
#include "comm/plugin_side/plugin_refusal.h"

namespace st::plugin {
namespace {

/// Gloo asks a store for the addresses of each rank, just before it connects to that rank. Before that it asks for each rank's host name
/// (key "rank_3") to count the ranks per host; nothing here uses that count, so it gets this rank's own host name.
class MeetingStore final : public gloo::rendezvous::Store {
 public:
  explicit MeetingStore(TcpRendezvous& rendezvous) : rendezvous_(rendezvous) {}

  void set(const std::string& key, const std::vector<char>& own) override {
    if (is_rank(key))
      addresses_ = rendezvous_.exchange(own);
    else
      host_ = own;
  }
  std::vector<char> get(const std::string& key) override {
    return is_rank(key) ? addresses_.at(static_cast<size_t>(asked_ = std::stoi(key))) : host_;
  }
  void wait(const std::vector<std::string>&) override {}

  int last_asked() const { return asked_; }

 private:
  static bool is_rank(const std::string& key) { return key.find_first_not_of("0123456789") == std::string::npos; }

  TcpRendezvous& rendezvous_;
  std::vector<std::vector<char>> addresses_;
  std::vector<char> host_;
  int asked_ = -1;
};

/// Precedes the bytes of a frame. The stamp includes the position in the stream, so the frame of an earlier lap cannot be mistaken for it.
struct Head {
  uint64_t stamp, taken, bytes;
};

uint64_t stamp_of(uint64_t position, uint64_t taken, uint64_t bytes) {
  uint64_t hash = 0x9E3779B97F4A7C15;
  for (const uint64_t part : {position, taken, bytes}) {
    hash = (hash ^ part) * 0xD6E8FEB86659FD93;
    hash ^= hash >> 32;
  }
  return hash;
}

RendezvousPoint place_of(const st_plugin_start& start) {
  if (start.rank < 0 || start.size < 1 || start.rank >= start.size)
    throw Refusal(ST_INVALID_ARGUMENT,
                  "rank must be 0 to size - 1, got rank " + std::to_string(start.rank) + " and size " + std::to_string(start.size));
  const std::string host = start.host == nullptr ? "" : start.host;
  if (start.size > 1 && (host.empty() || start.port < 1 || start.port > 65535))
    throw Refusal(ST_INVALID_ARGUMENT,
                  "needs the host of rank 0 and a free port from 1 to 65535 there (MASTER_ADDR and MASTER_PORT), got "
                  "host \"" +
                      host + "\" and port " + std::to_string(start.port));
  return {start.rank,
          start.size,
          host,
          start.port,
          static_cast<double>(start.milliseconds) / 1e3,
          [asks = start.is_cancelled, user = start.user] { return asks(user) != 0; }};
}

/// Loads a word that Gloo's thread may be writing.
uint64_t word_at(std::byte* place) { return std::atomic_ref(*reinterpret_cast<uint64_t*>(place)).load(std::memory_order_acquire); }

}  // namespace

struct GlooPipes::Mesh {
  explicit Mesh(const RendezvousPoint& place) : context(place.rank, place.size) {
    TcpRendezvous rendezvous(place);
    rendezvous.meet();
    MeetingStore store(rendezvous);
    const std::string& own_address = rendezvous.address_of(place.rank);
    // Gloo waits five times this timeout for a connection, and once for the end of a message whose start has arrived, if its own thread is
    // held up. All ranks have joined by now, so a tenth of the time left gives connecting at most half of it. With kLeast that may be as
    // much as 10 s: a rank that ends between joining and connecting is named that late.
    constexpr double kLeast = 2;
    context.setTimeout(std::chrono::milliseconds(static_cast<int64_t>(std::max(kLeast, rendezvous.time_left() / 10) * 1e3)));
    try {
      gloo::transport::tcp::attr attributes;
      attributes.hostname = own_address;
      auto device = gloo::transport::tcp::CreateDevice(attributes);
      context.connectFullMesh(store, device);
      // If a connection closes before the other rank's Gloo has seen it, Gloo throws on its own thread, which ends that process. So no rank
      // continues, and possibly ends, before all ranks have seen all their connections.
      rendezvous.exchange({});
    } catch (const Refusal&) {
      throw;
    } catch (const std::bad_alloc&) {  // not another rank's fault
      throw;
    } catch (const std::exception& error) {
      if (store.last_asked() < 0)
        throw Refusal(ST_IO, std::string("cannot open a connection at this host's address ") + own_address + ": " + error.what() +
                                 "; check that MASTER_ADDR is the address of rank 0's host");
      const int other = store.last_asked();
      throw Refusal(ST_RANK_FAILED,
                    "rank " + std::to_string(other) + " joined, but no connection could be made between " + own_address +
                        " and its address " + rendezvous.address_of(other) + ": " + error.what() +
                        "; it has ended since, or a firewall or address translation (NAT) is between the two; every rank must be able to "
                        "reach every other rank",
                    other);
    }
  }

  gloo::rendezvous::Context context;
};

/// Both directions between this rank and another. A frame in a ring is: Head, the bytes, padding to words, the stamp's complement. The last
/// bytes of a ring stay unused if no frame fits there. Each frame acknowledges what was taken of the other direction; if there is nothing
/// else to send, an empty frame does, for which there is always room.
class GlooPipes::Pipe {
 public:
  /// `size`: ranks in the group.
  Pipe(gloo::transport::Pair& pair, int size)
      : pair_(pair),
        ring_(std::clamp(std::bit_floor(kAll / static_cast<uint64_t>(size)), kLeastRing, kMostRing)),
        out_(std::make_unique_for_overwrite<uint64_t[]>(ring_ / sizeof(uint64_t))),
        in_(static_cast<uint64_t*>(std::calloc(ring_ / sizeof(uint64_t), sizeof(uint64_t)))),
        receiver_(pair.createRecvBuffer(kSlot, checked(in_.get()), ring_)),
        sender_(pair.createSendBuffer(kSlot, out_.get(), ring_)) {}
  ~Pipe() { pair_.close(); }  // so that Gloo's thread no longer uses our memory when it is freed
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  int64_t write(std::span<const std::byte> bytes) {
    const uint64_t done = put(bytes, ring_ - kReserve);
    return static_cast<int64_t>(done);
  }

  int64_t read(std::span<std::byte> bytes) {
    size_t done = 0;
    while (done < bytes.size() && (left_ > 0 || open_frame())) {
      const size_t piece = std::min<size_t>(bytes.size() - done, left_);
      std::memcpy(bytes.data() + done, memory(in_.get()) + front_ % ring_, piece);
      done += piece;
      front_ += piece;
      left_ -= piece;
      if (left_ == 0) close_frame();
    }
    try {
      if (read_ - acknowledged_ >= ring_ / 4) put({}, ring_);
    } catch (const std::exception&) {
      if (done == 0) throw;  // otherwise first return what has arrived: it may say why nothing more can be sent
    }
    return static_cast<int64_t>(done);
  }

 private:
  static constexpr int kSlot = 0;
  static constexpr uint64_t kMostRing = 2 << 20, kLeastRing = 128 << 10, kAll = 32 << 20, kReserve = 1 << 10;
  static constexpr uint64_t kMostBytes = (64 << 10) + (2 << 10);       // the library's 64 KiB and its control frames, in one message
  static constexpr uint64_t kFrame = sizeof(Head) + sizeof(uint64_t);  // of a frame without bytes
  static constexpr uint64_t kLeast = kFrame + 64;                      // no frame begins with less left before the ring's end

  static uint64_t padded(uint64_t bytes) { return (bytes + 7) / 8 * 8; }
  uint64_t place_of_next(uint64_t position) const {
    const uint64_t left = ring_ - position % ring_;
    return left < kLeast ? position + left : position;
  }
  static std::byte* memory(uint64_t* words) { return reinterpret_cast<std::byte*>(words); }
  static uint64_t* checked(uint64_t* words) {
    if (words == nullptr) throw std::bad_alloc();
    return words;
  }

  /// Sends a frame with as many of `bytes` as fit while at most `most` bytes of the ring are in flight; returns how many.
  uint64_t put(std::span<const std::byte> bytes, uint64_t most) {
    const uint64_t position = place_of_next(written_), offset = position % ring_;
    const uint64_t on_their_way = position - taken_by_other_;
    if (on_their_way + kLeast > most) return 0;
    const uint64_t room = std::min(most - on_their_way, ring_ - offset) - kFrame;
    const uint64_t carried = std::min({static_cast<uint64_t>(bytes.size()), kMostBytes, room / 8 * 8});
    if (carried == 0 && !bytes.empty()) return 0;
    const Head head{stamp_of(position, read_, carried), read_, carried};
    std::byte* const frame = memory(out_.get()) + offset;
    std::memcpy(frame, &head, sizeof head);
    if (carried > 0) std::memcpy(frame + sizeof head, bytes.data(), carried);
    std::memset(frame + sizeof head + carried, 0, padded(carried) - carried);
    const uint64_t tail = ~head.stamp;
    std::memcpy(frame + sizeof head + padded(carried), &tail, sizeof tail);
    written_ = position + kFrame + padded(carried);
    acknowledged_ = read_;
    const PipeSignal quiet;
    sender_->send(offset, kFrame + padded(carried), offset);
    return carried;
  }

  /// Opens the next frame that has arrived and carries bytes. False: there is none.
  bool open_frame() {
    for (;;) {
      const uint64_t position = place_of_next(read_);
      std::byte* const frame = memory(in_.get()) + position % ring_;
      const Head head{word_at(frame), word_at(frame + 8), word_at(frame + 16)};
      if (head.stamp != stamp_of(position, head.taken, head.bytes) || head.bytes > kMostBytes) return false;
      if (word_at(frame + sizeof head + padded(head.bytes)) != ~head.stamp) return false;
      try {
        receiver_->waitRecv();           // returns at once, since the frame is complete; makes the writes of Gloo's thread visible here
      } catch (const std::exception&) {  // the connection broke after this complete frame, which may say why
      }
      taken_by_other_ = std::clamp(head.taken, taken_by_other_, written_);
      front_ = position + sizeof head;
      left_ = head.bytes;
      frame_end_ = position + kFrame + padded(head.bytes);
      if (left_ > 0) return true;
      close_frame();
    }
  }
  void close_frame() { read_ = frame_end_; }

  gloo::transport::Pair& pair_;
  const uint64_t ring_;  // bytes
  struct Free {
    void operator()(uint64_t* words) const { std::free(words); }
  };
  // out_ is written here, in_ by the other rank. in_ is zeroed, or bytes of an earlier group could be taken for a frame; by calloc, which
  // touches no page that is already zero, so a group that sends little uses little memory.
  std::unique_ptr<uint64_t[]> out_;
  std::unique_ptr<uint64_t[], Free> in_;
  uint64_t written_ = 0, taken_by_other_ = 0;
  uint64_t read_ = 0, acknowledged_ = 0;           // end of the frames that are read, and what the other rank knows of it
  uint64_t front_ = 0, left_ = 0, frame_end_ = 0;  // the frame that is being read
  std::unique_ptr<gloo::transport::Buffer> receiver_, sender_;
};

GlooPipes::GlooPipes(const st_plugin_start& start) : place_(place_of(start)) {
  const PipeSignal quiet;  // Gloo's thread is started here
  if (size() > 1) mesh_ = std::make_unique<Mesh>(place_);
  for (int other = 0; other < size(); ++other)
    pipes_.push_back(other == rank() ? nullptr : std::make_unique<Pipe>(*mesh_->context.getPair(other), size()));
}

GlooPipes::~GlooPipes() = default;

int64_t GlooPipes::write(int to, std::span<const std::byte> bytes) { return pipes_.at(static_cast<size_t>(to))->write(bytes); }
int64_t GlooPipes::read(int from, std::span<std::byte> bytes) { return pipes_.at(static_cast<size_t>(from))->read(bytes); }

}  // namespace st::plugin
