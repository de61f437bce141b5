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

/// Gloo asks a store for the addresses of each rank in turn, when it is about to connect to it; and before that, under the key "rank_3",
/// for its host's name, to count the ranks of a host: which nobody here asks for, so each is told its own.
class MeetingStore final : public gloo::rendezvous::Store {
 public:
  explicit MeetingStore(TcpMeeting& meeting) : meeting_(meeting) {}

  void set(const std::string& key, const std::vector<char>& own) override {
    if (is_rank(key))
      addresses_ = meeting_.exchange(own);
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

  TcpMeeting& meeting_;
  std::vector<std::vector<char>> addresses_;
  std::vector<char> host_;
  int asked_ = -1;
};

/// Before and behind what a frame carries. The stamp is of the place in the stream, so that no earlier lap's looks like it.
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

MeetingPlace place_of(const st_plugin_start& start) {
  if (start.rank < 0 || start.size < 1 || start.rank >= start.size)
    throw Refusal(ST_INVALID_ARGUMENT, "give rank and size, got rank " + std::to_string(start.rank) + " of " + std::to_string(start.size));
  const std::string host = start.host == nullptr ? "" : start.host;
  if (start.size > 1 && (host.empty() || start.port < 1 || start.port > 65535))
    throw Refusal(ST_INVALID_ARGUMENT, "give the host of rank 0 and a free port there (MASTER_ADDR and MASTER_PORT), got host \"" + host +
                                           "\" and port " + std::to_string(start.port));
  return {start.rank,
          start.size,
          host,
          start.port,
          static_cast<double>(start.milliseconds) / 1e3,
          [asks = start.is_cancelled, user = start.user] { return asks(user) != 0; }};
}

/// Of memory that Gloo's thread writes into meanwhile.
uint64_t word_at(std::byte* place) { return std::atomic_ref(*reinterpret_cast<uint64_t*>(place)).load(std::memory_order_acquire); }

}  // namespace

struct GlooPipes::Mesh {
  explicit Mesh(const MeetingPlace& place) : context(place.rank, place.size) {
    TcpMeeting meeting(place);
    meeting.meet();
    MeetingStore store(meeting);
    const std::string& own_address = meeting.address_of(place.rank);
    // Gloo waits five times as long for a connection, and so long for the end of a message that has come, if its own thread is held up.
    // Who is connected to has come, so that half of the time is left for it at most: else a start would take twice what was asked for.
    // Of a short time it is more, 10 s: who ends between its coming and its connection is named as late as that.
    constexpr double kLeast = 2;
    context.setTimeout(std::chrono::milliseconds(static_cast<int64_t>(std::max(kLeast, meeting.time_left() / 10) * 1e3)));
    try {
      gloo::transport::tcp::attr attributes;
      attributes.hostname = own_address;
      auto device = gloo::transport::tcp::CreateDevice(attributes);
      context.connectFullMesh(store, device);
      // A connection that has gone again before the other rank's Gloo has seen it makes that throw on its own thread, which ends the
      // process there. So none of ours ends before all have seen theirs.
      meeting.exchange({});
    } catch (const Refusal&) {
      throw;
    } catch (const std::bad_alloc&) {  // nobody else's fault
      throw;
    } catch (const std::exception& error) {
      if (store.last_asked() < 0)
        throw Refusal(ST_IO, std::string("no connection can be made at this host's address ") + own_address + ": " + error.what() +
                                 "; is MASTER_ADDR that of rank 0's host?");
      const int other = store.last_asked();
      throw Refusal(ST_RANK_FAILED,
                    "rank " + std::to_string(other) + " came, but there is no connection between " + own_address + " and its address " +
                        meeting.address_of(other) + ": " + error.what() +
                        "; has it ended since, or is a firewall or a translation of addresses (NAT) between the two? Every rank must reach "
                        "every other one",
                    other);
    }
  }

  gloo::rendezvous::Context context;
};

/// Both directions between this rank and another. A frame in a ring: Head, the bytes, padding to words, the stamp's complement. A ring's
/// last bytes stay free where no frame fits. Each frame says how much of the other direction was taken; where nothing else is to be sent,
/// an empty one says it, for which there is always room.
class GlooPipes::Pipe {
 public:
  /// A group of `size`.
  Pipe(gloo::transport::Pair& pair, int size)
      : pair_(pair),
        ring_(std::clamp(std::bit_floor(kAll / static_cast<uint64_t>(size)), kLeastRing, kMostRing)),
        out_(std::make_unique_for_overwrite<uint64_t[]>(ring_ / sizeof(uint64_t))),
        in_(static_cast<uint64_t*>(std::calloc(ring_ / sizeof(uint64_t), sizeof(uint64_t)))),
        receiver_(pair.createRecvBuffer(kSlot, checked(in_.get()), ring_)),
        sender_(pair.createSendBuffer(kSlot, out_.get(), ring_)) {}
  ~Pipe() { pair_.close(); }  // Gloo's thread lets go of our memory before it is freed
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
      if (read_ - told_ >= ring_ / 4) put({}, ring_);
    } catch (const std::exception&) {
      if (done == 0) throw;  // else what has come first: perhaps it says why nothing more can be sent
    }
    return static_cast<int64_t>(done);
  }

 private:
  static constexpr int kSlot = 0;
  static constexpr uint64_t kMostRing = 2 << 20, kLeastRing = 128 << 10, kAll = 32 << 20, kReserve = 1 << 10;
  static constexpr uint64_t kMostBytes = (64 << 10) + (2 << 10);       // of the library's 64 KiB with what it says beside them, one message
  static constexpr uint64_t kFrame = sizeof(Head) + sizeof(uint64_t);  // without what it carries
  static constexpr uint64_t kLeast = kFrame + 64;                      // no frame begins where less is left of the ring

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

  /// A frame, with as much as it takes where `most` bytes may be on their way. How many bytes.
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
    told_ = read_;
    const PipeSignal quiet;
    sender_->send(offset, kFrame + padded(carried), offset);
    return carried;
  }

  /// The next frame that has come with something in it. False: none has.
  bool open_frame() {
    for (;;) {
      const uint64_t position = place_of_next(read_);
      std::byte* const frame = memory(in_.get()) + position % ring_;
      const Head head{word_at(frame), word_at(frame + 8), word_at(frame + 16)};
      if (head.stamp != stamp_of(position, head.taken, head.bytes) || head.bytes > kMostBytes) return false;
      if (word_at(frame + sizeof head + padded(head.bytes)) != ~head.stamp) return false;
      try {
        receiver_->waitRecv();           // all of it is here: Gloo's thread says so in this moment, and what it wrote is ours to read
      } catch (const std::exception&) {  // the connection is gone, behind a frame that is whole: perhaps it says why
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
  // Ours, and what the other rank writes into: zeros, lest what an earlier group has left there be taken for a frame. By calloc, which
  // touches no page that is zero already: a group that says little takes little.
  std::unique_ptr<uint64_t[]> out_;
  std::unique_ptr<uint64_t[], Free> in_;
  uint64_t written_ = 0, taken_by_other_ = 0;
  uint64_t read_ = 0, told_ = 0;                   // up to where frames are read, and the other one knows it
  uint64_t front_ = 0, left_ = 0, frame_end_ = 0;  // of the frame that is being read
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
