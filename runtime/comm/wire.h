// A rank's streams to the others, with what every collective needs: headers that must agree, deadlines, and one way to end on an error.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/float_mode.h"
#include "comm/collective.h"
#include "comm/communicator_options.h"
#include "comm/flight_recorder.h"
#include "comm/group_error.h"
#include "comm/shared_transport.h"
#include "comm/transport.h"

namespace st {

/// Throws invalid_argument if an option is out of its range.
void check_options(const CommunicatorOptions& options);

/// Used by one thread at a time, except abort(), sent_bytes() and the recorder. Any exception within a call ends the group.
class Wire {
 public:
  static constexpr int64_t kEager = 16 << 10;  // up to this many bytes are copied after their header, so the sender need not wait

  Wire(std::unique_ptr<Transport> transport, CommunicatorOptions options, std::shared_ptr<SharedTransport> shared = nullptr);
  ~Wire();  // unless the group has ended, waits until no other rank reads our memory, at most for the deadline
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  int after(int step) const { return (rank() + step) % size(); }  // each rank starts with another peer, which spreads the load
  const Transport& transport() const { return first_; }
  const FlightRecorder& recorder() const { return recorder_; }
  int64_t sent_bytes() const { return sent_bytes_.load(std::memory_order_relaxed); }
  void abort(std::string_view reason) noexcept;
  bool has_ended();
  void give_up() noexcept;  // ends the group after an error
  double deadline() const { return options_.deadline; }
  uint64_t sequence() const { return sequence_; }

  /// Runs body() as one collective, in the library's floating-point mode. `detail`: a digest of what else ranks must agree in, such as how
  /// elements are sharded.
  template <class Body>
  void in_call(const CollectiveCall& call, uint64_t detail, const Body& body) {
    const FloatMode mode;
    try {
      begin(call, detail);
      body();
      end();
    } catch (...) {
      give_up();
      throw;
    }
  }

  // Within a call; the argument is another rank.

  /// Sends the header of this call, followed by `eager`: at most kEager bytes of elements, which may be overwritten on return.
  void send_header(int to, std::span<const std::byte> eager = {});
  void greet_all(std::span<const std::byte> eager = {}, int but = -1);
  /// Waits for that rank's header and compares it with ours. Throws rank_mismatch with both calls.
  void check_header(int from);
  void check_headers();

  /// Posts elements to that rank; borrowed until wait_until_read().
  void post(int to, const void* data, int64_t bytes);
  /// Posts a few bytes that are no elements to all ranks; borrowed likewise.
  void signal_all(std::span<const std::byte> bytes);
  /// Counts elements that this rank gives to others without the wire.
  void count_sent(int64_t bytes) { sent_bytes_.fetch_add(bytes, std::memory_order_relaxed); }
  /// Throws if the group has ended, as a wait does.
  void check_failure();
  /// Waits until `is_done`: for what ranks do without the wire.
  void await(std::string_view what, const std::function<bool()>& is_done);
  /// Waits until no rank reads our memory any more.
  void wait_until_read() { wait_for_all(Awaited::reader); }

  /// Receives `bytes` from that rank; calls use(offset, data, bytes) for each run of whole elements of `width` (at most 8) bytes.
  template <class Use>
  void each_run(int from, int64_t bytes, int64_t width, const Use& use) {
    for (int64_t done = 0; done < bytes;) {
      const auto run = arrived(from);
      int64_t count = std::min({std::ssize(run), bytes - done, kRun});
      count -= count % width;
      if (count > 0) {
        use(done, run.data(), count);
        transport_->take(from, count);
      } else {  // an element that is split, as at the end of a ring
        std::array<std::byte, 8> element;
        fetch(from, element.data(), count = width);
        use(done, element.data(), count);
      }
      done += count;
    }
  }
  void fetch(int from, void* to, int64_t bytes);

  // Groups of these ranks, over the same transport.

  /// This rank's number for a new group, which the others must know before they open their ends.
  uint32_t reserve_group();
  void release_group(uint32_t number) noexcept;  // instead of opening it
  /// members[rank] is this rank; ranks are of this group. All of them open or release theirs after the same call, of which all was read.
  std::unique_ptr<Wire> open_group(uint32_t number, std::vector<SharedTransport::Member> members, int rank, CommunicatorOptions options);

 private:
  static constexpr int64_t kRun = 1 << 20;  // bytes read at a time, so that the sender sees progress
  struct Header;
  enum class Awaited : int32_t { bytes, reader, room };
  struct Patience;

  void begin(const CollectiveCall& call, uint64_t detail);
  void end();
  Header header(int receiver) const;
  std::span<const std::byte> prepare(int to, std::span<const std::byte> eager);
  [[noreturn]] void end_group(const RankFailure& failure);
  [[noreturn]] void cancel();
  [[noreturn]] void refuse(int from, const Header& theirs, const Header& ours);

  /// At least one byte; waits for it.
  std::span<const std::byte> arrived(int from);
  bool is_there(int other, Awaited awaited);
  void wait(int other, Awaited awaited);
  void wait_for_all(Awaited awaited);
  double look_around(Patience& patience);
  void look_around(int other, Patience& patience);
  [[noreturn]] void time_out(int other);
  double silence_of(int whole_rank) const;
  double long_silence() const;  // seconds
  RankFailure silence_of_rank(int whole_rank) const;
  bool is_silent(int whole_rank) const;
  int who_is_late(int other) const;

  int whole_rank(int rank) const { return first_.whole_rank(rank); }
  std::string in_group() const;

  std::unique_ptr<Transport> transport_;
  Transport& first_;                         // for other threads: transport_ until it is shared, which keeps it
  std::shared_ptr<SharedTransport> shared_;  // null until a group is opened
  const int rank_, size_;
  CommunicatorOptions options_;
  FlightRecorder recorder_;
  std::vector<std::byte> eager_;  // a header and its eager elements
  std::atomic<int64_t> sent_bytes_{0};
  struct Peer {
    uint64_t sent = 0, received = 0;  // messages of send() and receive()
    bool is_met = false;              // its header of this call has arrived
  };
  std::vector<Peer> peers_;
  uint64_t sequence_ = 0;  // of collectives of all ranks
  CallUnderWay here_;
  uint64_t detail_ = 0;
  int64_t sent_before_ = 0;  // sent_bytes() before this call
  bool is_over_ = false;
  std::optional<Error> over_;  // empty if there was no memory for the reason
};

}  // namespace st
