// Ranks that exchange arrays: threads of this process, or processes on one or several machines.
#pragma once

#include <scaletrain/communicator.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <memory>
#include <scaletrain/context.hpp>
#include <scaletrain/pending.hpp>
#include <scaletrain/view.hpp>
#include <string>
#include <utility>
#include <vector>

namespace scaletrain {

enum class ReduceOp : int32_t {
  sum = 1,
  mean = 2,  // of floating types
  max = 3,   // NaN if a rank has one
  min = 4
};

struct CommunicatorOptions {
  int64_t deadline_milliseconds = 60000;  // longest wait without a byte from the rank that is waited for; split, duplicate: 0 as before
  int64_t start_milliseconds = 60000;     // longest wait of ranks for each other at the start
  bool allow_single = false;              // env() without a launcher, a color of one rank: one rank alone, instead of an error
};

/// The range of an array's elements that belongs to one rank.
struct Share {
  int64_t begin = 0, count = 0;
};

/// How a rank reaches the others by functions of the program. Each returns at once. They are called one at a time, but from several
/// threads: one of the library's serves the group. An exception means that the other rank cannot be reached any more, and says why.
struct Transport {
  /// Takes as many bytes for rank `to` as it can, after those it took before; returns how many.
  std::function<int64_t(int32_t to, const void* data, int64_t bytes)> write;
  /// Gives bytes from rank `from`, at most so many; returns how many, 0 if there are none.
  std::function<int64_t(int32_t from, void* data, int64_t bytes)> read;
};

namespace detail {

/// A transport of the program, which the library holds until it is released.
struct TransportEnd {
  Transport transport;
  std::string reason;

  static st_status write(void* user, int32_t to, const void* data, int64_t bytes, int64_t* taken) {
    return moved(user, taken, [&](const Transport& theirs) { return theirs.write(to, data, bytes); });
  }
  static st_status read(void* user, int32_t from, void* data, int64_t bytes, int64_t* given) {
    return moved(user, given, [&](const Transport& theirs) { return theirs.read(from, data, bytes); });
  }
  static const char* why(void* user) { return static_cast<TransportEnd*>(user)->reason.c_str(); }
  static void end(void* user) { const std::unique_ptr<TransportEnd> own(static_cast<TransportEnd*>(user)); }

  template <class Move>
  static st_status moved(void* user, int64_t* bytes, const Move& move) noexcept {
    TransportEnd& own = *static_cast<TransportEnd*>(user);
    Fault unseen;  // no call is left that could throw it
    return shielded(unseen, [&] {
      try {
        *bytes = move(own.transport);
      } catch (const std::exception& error) {
        own.reason = error.what();
        throw;
      } catch (...) {
        own.reason = "a function of the transport threw something that says nothing";
        throw;
      }
    });
  }
};

}  // namespace detail

/// One rank of a group. Every rank makes the same calls in the same order; `name` labels the array in errors. Calls that end in _async
/// return at once and borrow the arrays until the Pending is done.
class Communicator : public detail::Handle<st_communicator, st_communicator_destroy> {
 public:
  /// n ranks of this process, one for each of n threads.
  static std::vector<Communicator> local(const Context& context, int32_t n, const CommunicatorOptions& options = CommunicatorOptions()) {
    constexpr int32_t kMost = 256;  // the library's limit
    std::vector<st_communicator*> raw(static_cast<size_t>(std::clamp(n, 1, kMost)));
    std::vector<Communicator> made;
    for (size_t i = 0; i < raw.size(); ++i) made.push_back(Communicator(detail::Access::host(context)));
    const st_communicator_options times = raw_options(options);
    made.front().done(st_communicator_local(context.get(), n, &times, raw.data()));
    for (size_t i = 0; i < raw.size(); ++i) *static_cast<st_communicator**>(made[i].out()) = raw[i];
    return made;
  }
  /// One of `size` processes of this machine that pass the same `job`. Returns when all are there.
  static Communicator processes(const Context& context, const std::string& job, int32_t rank, int32_t size,
                                const CommunicatorOptions& options = CommunicatorOptions()) {
    Communicator made(detail::Access::host(context));
    const st_communicator_options times = raw_options(options);
    made.done(st_communicator_processes(context.get(), job.c_str(), rank, size, &times, made.out()));
    return made;
  }
  /// This process's rank by `scaletrain launch`, torchrun, mpirun or srun; with allow_single one rank alone if there is no launcher.
  static Communicator env(const Context& context, const CommunicatorOptions& options = CommunicatorOptions()) {
    Communicator made(detail::Access::host(context));
    const st_communicator_options times = raw_options(options);
    made.done(st_communicator_env(context.get(), &times, made.out()));
    return made;
  }

  /// This process's rank in the program's own group: "mpi" and an MPI_Comm*, which is duplicated (null: MPI_COMM_WORLD).
  static Communicator of_host(const Context& context, const std::string& transport, const void* group,
                              const CommunicatorOptions& options = CommunicatorOptions()) {
    Communicator made(detail::Access::host(context));
    const st_communicator_options times = raw_options(options);
    made.done(st_communicator_host(context.get(), transport.c_str(), group, &times, made.out()));
    return made;
  }
  /// Rank `rank` of `size` that reach each other by the program's own functions, which are destroyed when the communicator and everything
  /// that uses it are gone.
  static Communicator callbacks(const Context& context, int32_t rank, int32_t size, const Transport& transport,
                                const CommunicatorOptions& options = CommunicatorOptions()) {
    Communicator made(detail::Access::host(context));
    const st_communicator_options times = raw_options(options);
    auto own = std::make_unique<detail::TransportEnd>();
    own->transport = transport;
    st_transport_callbacks raw;
    check(st_transport_callbacks_init(&raw, sizeof raw));
    raw.write = transport.write ? detail::TransportEnd::write : nullptr;
    raw.read = transport.read ? detail::TransportEnd::read : nullptr;
    raw.reason = detail::TransportEnd::why;
    raw.release = detail::TransportEnd::end;
    const st_status status = st_communicator_callbacks(context.get(), rank, size, &raw, own.get(), &times, made.out());
    if (status == ST_OK) static_cast<void>(own.release());  // the library owns it, whatever done() throws
    made.done(status);
    return made;
  }

  /// The ranks of this group that give the same color, ordered by key, then by rank: a group of its own over the same transport. All ranks
  /// make this call.
  Communicator split(int32_t color, int32_t key, const CommunicatorOptions& options) const {
    Communicator made(host());
    const st_communicator_options raw = raw_options(options);
    made.done(st_communicator_split(get(), color, key, &raw, made.out()));
    return made;
  }
  Communicator split(int32_t color, int32_t key = 0) const { return split(color, key, same_deadline()); }
  /// The same ranks as another group, for calls in an order of their own.
  Communicator duplicate(const CommunicatorOptions& options) const {
    Communicator made(host());
    const st_communicator_options raw = raw_options(options);
    made.done(st_communicator_duplicate(get(), &raw, made.out()));
    return made;
  }
  Communicator duplicate() const { return duplicate(same_deadline()); }

  int32_t rank() const {
    int32_t rank = 0;
    done(st_communicator_rank(get(), &rank));
    return rank;
  }
  int32_t size() const {
    int32_t size = 0;
    done(st_communicator_size(get(), &size));
    return size;
  }
  /// The share of so many elements, as reduce_scatter and all_gather divide them.
  Share share(int64_t elements, int32_t rank) const {
    Share share;
    done(st_communicator_share(get(), elements, rank, &share.begin, &share.count));
    return share;
  }
  Share share(int64_t elements) const { return share(elements, rank()); }

  /// In place.
  void all_reduce(const View& view, ReduceOp op = ReduceOp::sum, const std::string& name = "") const {
    all_reduce_to(nullptr, view, op, name);
  }
  Pending all_reduce_async(const View& view, ReduceOp op = ReduceOp::sum, const std::string& name = "") const {
    return begun([&](st_pending** pending) { all_reduce_to(pending, view, op, name); });
  }
  /// own: this rank's share of whole, within it or in its own memory.
  void reduce_scatter(const View& whole, const View& own, ReduceOp op = ReduceOp::sum, const std::string& name = "") const {
    reduce_scatter_to(nullptr, whole, own, op, name);
  }
  Pending reduce_scatter_async(const View& whole, const View& own, ReduceOp op = ReduceOp::sum, const std::string& name = "") const {
    return begun([&](st_pending** pending) { reduce_scatter_to(pending, whole, own, op, name); });
  }
  void all_gather(const View& own, const View& whole, const std::string& name = "") const { all_gather_to(nullptr, own, whole, name); }
  Pending all_gather_async(const View& own, const View& whole, const std::string& name = "") const {
    return begun([&](st_pending** pending) { all_gather_to(pending, own, whole, name); });
  }
  /// Block i of `from` goes to rank i, and rank i's block for this rank into block i of `to`.
  void all_to_all(const View& from, const View& to, const std::string& name = "") const { all_to_all_to(nullptr, from, to, name); }
  Pending all_to_all_async(const View& from, const View& to, const std::string& name = "") const {
    return begun([&](st_pending** pending) { all_to_all_to(pending, from, to, name); });
  }
  void broadcast(const View& view, int32_t root = 0, const std::string& name = "") const { broadcast_to(nullptr, view, root, name); }
  Pending broadcast_async(const View& view, int32_t root = 0, const std::string& name = "") const {
    return begun([&](st_pending** pending) { broadcast_to(pending, view, root, name); });
  }
  void send(const View& view, int32_t to, const std::string& name = "") const { send_to(nullptr, view, to, name); }
  Pending send_async(const View& view, int32_t to, const std::string& name = "") const {
    return begun([&](st_pending** pending) { send_to(pending, view, to, name); });
  }
  void receive(const View& view, int32_t from, const std::string& name = "") const { receive_to(nullptr, view, from, name); }
  Pending receive_async(const View& view, int32_t from, const std::string& name = "") const {
    return begun([&](st_pending** pending) { receive_to(pending, view, from, name); });
  }
  void barrier(const std::string& name = "") const { done(st_communicator_barrier(get(), name.c_str(), nullptr)); }
  Pending barrier_async(const std::string& name = "") const {
    return begun([&](st_pending** pending) { done(st_communicator_barrier(get(), name.c_str(), pending)); });
  }

  /// Ends the group on every rank. From any thread at any time.
  void abort(const std::string& reason = "") const { done(st_communicator_abort(get(), reason.c_str())); }

  /// Bytes of elements that this rank has sent to others so far.
  int64_t sent_bytes() const {
    int64_t bytes = 0;
    done(st_communicator_sent_bytes(get(), &bytes));
    return bytes;
  }
  /// This rank's last calls as JSON.
  std::string flight_record() const { return text(st_communicator_flight_record); }

 private:
  static CommunicatorOptions same_deadline() {
    CommunicatorOptions options;
    options.deadline_milliseconds = 0;
    return options;
  }
  explicit Communicator(const std::shared_ptr<detail::Host>& host) : Handle(host) {}

  static st_communicator_options raw_options(const CommunicatorOptions& options) {
    st_communicator_options raw;
    check(st_communicator_options_init(&raw, sizeof raw));
    raw.deadline_milliseconds = options.deadline_milliseconds;
    raw.start_milliseconds = options.start_milliseconds;
    raw.allow_single = options.allow_single ? 1 : 0;
    return raw;
  }
  template <class Call>
  Pending begun(const Call& call) const {
    Pending pending(host());
    call(pending.out());
    return pending;
  }

  void all_reduce_to(st_pending** pending, const View& view, ReduceOp op, const std::string& name) const {
    const st_view raw = detail::writable("Communicator::all_reduce", view).raw();
    done(st_communicator_all_reduce(get(), name.c_str(), &raw, static_cast<st_reduce_op>(op), pending));
  }
  void reduce_scatter_to(st_pending** pending, const View& whole, const View& own, ReduceOp op, const std::string& name) const {
    const st_view from = whole.raw(), to = detail::writable("Communicator::reduce_scatter", own).raw();
    done(st_communicator_reduce_scatter(get(), name.c_str(), &from, &to, static_cast<st_reduce_op>(op), pending));
  }
  void all_gather_to(st_pending** pending, const View& own, const View& whole, const std::string& name) const {
    const st_view from = own.raw(), to = detail::writable("Communicator::all_gather", whole).raw();
    done(st_communicator_all_gather(get(), name.c_str(), &from, &to, pending));
  }
  void all_to_all_to(st_pending** pending, const View& from, const View& to, const std::string& name) const {
    const st_view given = from.raw(), got = detail::writable("Communicator::all_to_all", to).raw();
    done(st_communicator_all_to_all(get(), name.c_str(), &given, &got, pending));
  }
  void broadcast_to(st_pending** pending, const View& view, int32_t root, const std::string& name) const {
    if (root != rank()) detail::writable("Communicator::broadcast", view);
    const st_view raw = view.raw();
    done(st_communicator_broadcast(get(), name.c_str(), &raw, root, pending));
  }
  void send_to(st_pending** pending, const View& view, int32_t to, const std::string& name) const {
    const st_view raw = view.raw();
    done(st_communicator_send(get(), name.c_str(), &raw, to, pending));
  }
  void receive_to(st_pending** pending, const View& view, int32_t from, const std::string& name) const {
    const st_view raw = detail::writable("Communicator::receive", view).raw();
    done(st_communicator_receive(get(), name.c_str(), &raw, from, pending));
  }
};

}  // namespace scaletrain
