#include "comm/direct_exchange.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/combine.h"
#include "base/error.h"
#include "base/text.h"
#include "comm/call_checks.h"
#include "comm/wire.h"

namespace st {
namespace {

void check_data(const CollectiveCall& call, const void* data) {
  check_call(call.elements >= 0 && call.elements <= INT64_MAX / 16, call, "the number of elements must be 0 to 2^59 - 1");
  check_call(data != nullptr || call.elements == 0, call, "the data is null");
}

void check_reduction(const CollectiveCall& call) {
  check_call(call.op >= ReduceOp::sum && call.op <= ReduceOp::min, call, "op must be sum, mean, max or min, got ",
             static_cast<int32_t>(call.op));
  check_call(call.dtype != DType::boolean, call, "booleans cannot be reduced; use u8 and max");
  check_call(call.op != ReduceOp::mean || is_floating(call.dtype), call, "integers have no mean; use the sum");
}

}  // namespace

DirectExchange::DirectExchange(std::unique_ptr<Transport> transport, const CommunicatorOptions& options)
    : wire_(std::make_unique<Wire>(std::move(transport), options)), chunk_(options.chunk), sums_(static_cast<size_t>(chunk_ * 8)) {}

DirectExchange::~DirectExchange() = default;
DirectExchange::DirectExchange(DirectExchange&&) noexcept = default;
DirectExchange& DirectExchange::operator=(DirectExchange&&) noexcept = default;

int DirectExchange::rank() const { return wire_->rank(); }
int DirectExchange::size() const { return wire_->size(); }
const Transport& DirectExchange::transport() const { return wire_->transport(); }
double DirectExchange::deadline() const { return wire_->deadline(); }
uint64_t DirectExchange::sequence() const { return wire_->sequence(); }
void DirectExchange::abort(std::string_view reason) noexcept { wire_->abort(reason); }
bool DirectExchange::has_ended() const { return wire_->has_ended(); }
int64_t DirectExchange::sent_bytes() const { return wire_->sent_bytes(); }
const FlightRecorder& DirectExchange::recorder() const { return wire_->recorder(); }

// Groups.

/// A rank's part of a split, which all ranks receive.
struct DirectExchange::Entry {
  int32_t color = 0, key = 0;
  uint32_t number = 0;  // of its new group
  int32_t allows_single = 0;
};

DirectExchange::DirectExchange(std::unique_ptr<Wire> wire, int64_t chunk)
    : wire_(std::move(wire)), chunk_(chunk), sums_(static_cast<size_t>(chunk_ * 8)) {}

/// The entries of all ranks.
std::vector<DirectExchange::Entry> DirectExchange::exchange(const CollectiveCall& call, const Entry& own) {
  std::vector<Entry> entries(static_cast<size_t>(size()), own);
  wire_->in_call(call, 0, [&] {
    wire_->greet_all(std::as_bytes(std::span(&own, 1)));
    wire_->check_headers();
    for (int step = 1; step < size(); ++step) {
      const int other = wire_->after(step);
      wire_->fetch(other, &entries[static_cast<size_t>(other)], sizeof own);
    }
    wire_->wait_until_read();
  });
  return entries;
}

/// Makes the group of the ranks that gave this rank's color.
std::unique_ptr<Communicator> DirectExchange::group_of(const std::vector<Entry>& entries, CommunicatorOptions options) {
  const Entry& own = entries[static_cast<size_t>(rank())];
  try {
    std::vector<SharedTransport::Member> members;
    for (int other = 0; other < size(); ++other) {
      const Entry& entry = entries[static_cast<size_t>(other)];
      if (entry.color == own.color) members.push_back({other, entry.number});
    }
    std::ranges::stable_sort(members, {}, [&](const auto& member) { return entries[static_cast<size_t>(member.rank)].key; });
    const auto here = std::ranges::find(members, rank(), &SharedTransport::Member::rank) - members.begin();
    options.chunk = chunk_;
    auto wire = wire_->open_group(own.number, std::move(members), static_cast<int>(here), std::move(options));
    return std::unique_ptr<Communicator>(new DirectExchange(std::move(wire), chunk_));
  } catch (...) {  // the other ranks have their ends
    wire_->give_up();
    throw;
  }
}

std::unique_ptr<Communicator> DirectExchange::split(int32_t color, int32_t key, const CommunicatorOptions& options, bool allow_single) {
  constexpr int kNamed = 64;
  check(color >= 0, "split: color must be 0 or more, got ", color, "; ranks that give the same color become a group");
  check_options(options);
  const Entry own{color, key, wire_->reserve_group(), allow_single ? 1 : 0};
  const auto entries = exchange({Collective::split, ReduceOp::sum, DType::u8, 0, -1, {}}, own);
  for (int rank = 0; rank < size(); ++rank) {
    const Entry& entry = entries[static_cast<size_t>(rank)];
    if (entry.allows_single != 0 || std::ranges::count(entries, entry.color, &Entry::color) > 1) continue;
    wire_->release_group(own.number);
    std::string colors;
    for (int other = 0; other < std::min(size(), kNamed); ++other)
      colors += text(other == 0 ? "" : ", ", entries[static_cast<size_t>(other)].color);
    refuse_rank(*this, rank, {},
                text("split: ", text_of_rank(*this, rank), " gives color ", entry.color, " alone; the colors by rank are ", colors,
                     size() > kNamed ? ", ..; " : "; ", "give it the color of another rank, or allow groups of one rank (allow_single)"));
  }
  return group_of(entries, options);
}

std::unique_ptr<Communicator> DirectExchange::duplicate(const CommunicatorOptions& options) {
  check_options(options);
  const Entry own{0, 0, wire_->reserve_group(), 1};
  return group_of(exchange({Collective::duplicate, ReduceOp::sum, DType::u8, 0, -1, {}}, own), options);
}

// Reductions.

/// Folds n elements of each rank's stream, and of `own`, into sums in rank order. The sums lie in the wider type, of either `type`.
void DirectExchange::fold(std::byte* sums, const std::byte* own, int64_t n, DType dtype, ReduceOp op, int contributors, bool adds,
                          SumType type) {
  const int64_t width = bytes_of(dtype), wide = sum_bytes_of(dtype);
  for (int r = 0; r < contributors; ++r) {
    const auto put = [&](int64_t offset, const std::byte* piece, int64_t bytes) {
      std::byte* const to = sums + offset / width * wide;
      if (r == 0 && !adds) return widen(dtype, piece, to, bytes / width);
      if (type == SumType::own) return combine_rounded(dtype, piece, to, bytes / width);
      combine(dtype, op, piece, to, bytes / width);
    };
    if (r == rank())
      put(0, own, n * width);
    else
      wire_->each_run(r, n * width, width, put);
  }
}

/// `out` may be `own`.
void DirectExchange::reduce_to(const std::byte* own, std::byte* out, int64_t n, DType dtype, ReduceOp op) {
  const int64_t width = bytes_of(dtype);
  for (int64_t done = 0; done < n; done += chunk_) {
    const int64_t count = std::min(chunk_, n - done);
    fold(sums_.data(), own + done * width, count, dtype, op, size(), false, SumType::wide);
    if (op == ReduceOp::mean) divide(dtype, size(), sums_.data(), count);
    narrow(dtype, sums_.data(), out + done * width, count);
  }
}

void DirectExchange::all_reduce(void* data, int64_t elements, DType dtype, ReduceOp op, std::string_view label) {
  const CollectiveCall call{Collective::all_reduce, op, dtype, elements, -1, label};
  check_data(call, data);
  check_reduction(call);
  auto* const bytes = static_cast<std::byte*>(data);
  wire_->in_call(call, AlikeOnAll().add(chunk_).value(), [&] {
    if (size() == 1) return;
    if (elements * bytes_of(dtype) <= 2 * Wire::kEager / size()) return all_reduce_at_once(bytes, elements, dtype, op);
    all_reduce_by_shares(bytes, elements, dtype, op);
  });
}

void DirectExchange::all_reduce_at_once(std::byte* data, int64_t elements, DType dtype, ReduceOp op) {
  wire_->greet_all({data, static_cast<size_t>(elements * bytes_of(dtype))});
  wire_->check_headers();
  reduce_to(data, data, elements, dtype, op);
}

/// In rounds, so that a chunk is gathered while it is in the caches of the rank that reduced it. Ranks may be kLead rounds apart before one
/// waits for another: chunks are posted kLead rounds before they are reduced, and results fetched kLead rounds after.
void DirectExchange::all_reduce_by_shares(std::byte* data, int64_t elements, DType dtype, ReduceOp op) {
  constexpr int64_t kLead = 4;
  const int64_t width = bytes_of(dtype);
  struct Chunk {
    std::byte* data;
    int64_t elements;
  };
  const auto chunk_of = [&](int owner, int64_t round) {
    const int64_t end = share(elements, owner + 1), begin = std::min(share(elements, owner) + round * chunk_, end);
    return Chunk{data + begin * width, std::min(chunk_, end - begin)};
  };
  const auto post_pieces = [&](int64_t round) {
    for (int step = 1; step < size(); ++step) {
      const Chunk piece = chunk_of(wire_->after(step), round);
      wire_->post(wire_->after(step), piece.data, piece.elements * width);
    }
  };
  const auto fetch_results = [&](int64_t round) {
    for (int step = 1; step < size(); ++step) {
      const Chunk result = chunk_of(wire_->after(step), round);
      wire_->fetch(wire_->after(step), result.data, result.elements * width);
    }
  };

  wire_->greet_all();
  for (int64_t round = 0; round < kLead; ++round) post_pieces(round);
  wire_->check_headers();
  const int64_t rounds = (share(elements, 1) + chunk_ - 1) / chunk_;  // the first share is the longest
  for (int64_t round = 0; round < rounds + kLead; ++round) {
    post_pieces(round + kLead);
    const Chunk own = chunk_of(rank(), round);
    reduce_to(own.data, own.data, own.elements, dtype, op);
    for (int step = 1; step < size(); ++step) wire_->post(wire_->after(step), own.data, own.elements * width);
    if (round >= kLead) fetch_results(round - kLead);
  }
  wire_->wait_until_read();
}

void DirectExchange::reduce_scatter(const void* data, void* own, int64_t elements, DType dtype, ReduceOp op, std::string_view label) {
  const CollectiveCall call{Collective::reduce_scatter, op, dtype, elements, -1, label};
  check_data(call, data);
  check_call(own != nullptr || share(elements, rank()) == share(elements, rank() + 1), call, "the memory for this rank's shard is null");
  check_reduction(call);
  const auto* const whole = static_cast<const std::byte*>(data);
  const int64_t width = bytes_of(dtype);
  wire_->in_call(call, AlikeOnAll().add(chunk_).value(), [&] {
    const auto begin = [&](int rank) { return share(elements, rank) * width; };
    wire_->greet_all();
    for (int step = 1; step < size(); ++step) {
      const int owner = wire_->after(step);
      wire_->post(owner, whole + begin(owner), begin(owner + 1) - begin(owner));
    }
    wire_->check_headers();
    reduce_to(whole + begin(rank()), static_cast<std::byte*>(own), share(elements, rank() + 1) - share(elements, rank()), dtype, op);
    wire_->wait_until_read();
  });
}

// Exchanges.

void DirectExchange::all_gather(const void* own, void* data, int64_t elements, DType dtype, std::string_view label) {
  const CollectiveCall call{Collective::all_gather, ReduceOp::sum, dtype, elements, -1, label};
  check_data(call, data);
  check_call(own != nullptr || share(elements, rank()) == share(elements, rank() + 1), call, "this rank's shard is null");
  auto* const whole = static_cast<std::byte*>(data);
  const int64_t width = bytes_of(dtype), begin = share(elements, rank()) * width, bytes = share(elements, rank() + 1) * width - begin;
  wire_->in_call(call, 0, [&] {
    wire_->greet_all();
    if (bytes > 0) std::memmove(whole + begin, own, static_cast<size_t>(bytes));
    gather_shares(whole, elements, width);
  });
}

/// This rank's shard is already in place.
void DirectExchange::gather_shares(std::byte* data, int64_t elements, int64_t width) {
  const auto begin = [&](int rank) { return share(elements, rank) * width; };
  for (int step = 1; step < size(); ++step) wire_->post(wire_->after(step), data + begin(rank()), begin(rank() + 1) - begin(rank()));
  wire_->check_headers();
  for (int step = 1; step < size(); ++step) {
    const int owner = wire_->after(step);
    wire_->fetch(owner, data + begin(owner), begin(owner + 1) - begin(owner));
  }
  wire_->wait_until_read();
}

void DirectExchange::all_to_all(const void* from, void* to, int64_t elements, DType dtype, std::string_view label) {
  const CollectiveCall call{Collective::all_to_all, ReduceOp::sum, dtype, elements, -1, label};
  check_data(call, from);
  check_data(call, to);
  check_call(elements % size() == 0, call, "the number of elements must be a multiple of the number of ranks, ", size());
  const auto* const source = static_cast<const std::byte*>(from);
  auto* const target = static_cast<std::byte*>(to);
  const int64_t part = elements / size() * bytes_of(dtype);
  wire_->in_call(call, 0, [&] {
    wire_->greet_all();
    for (int step = 1; step < size(); ++step) wire_->post(wire_->after(step), source + wire_->after(step) * part, part);
    wire_->check_headers();
    if (part > 0) std::memcpy(target + rank() * part, source + rank() * part, static_cast<size_t>(part));
    for (int step = 1; step < size(); ++step) wire_->fetch(wire_->after(step), target + wire_->after(step) * part, part);
    wire_->wait_until_read();
  });
}

void DirectExchange::broadcast(void* data, int64_t elements, DType dtype, int root, std::string_view label) {
  const CollectiveCall call{Collective::broadcast, ReduceOp::sum, dtype, elements, root, label};
  check_data(call, data);
  check_call(root >= 0 && root < size(), call, "root must be 0 to ", size() - 1, ", got ", root);
  auto* const bytes = static_cast<std::byte*>(data);
  const int64_t length = elements * bytes_of(dtype);
  wire_->in_call(call, 0, [&] {
    if (size() == 1) return;
    if (size() > 2 && length > Wire::kEager * size()) return broadcast_by_shares(bytes, elements, bytes_of(dtype), root);
    if (rank() != root) {
      wire_->check_header(root);
      return wire_->fetch(root, bytes, length);
    }
    if (length <= Wire::kEager) return wire_->greet_all({bytes, static_cast<size_t>(length)});
    wire_->greet_all();
    for (int step = 1; step < size(); ++step) wire_->post(wire_->after(step), bytes, length);
    wire_->wait_until_read();
  });
}

/// The root sends each rank that rank's shard and the root's own shard; the others gather the rest among themselves.
void DirectExchange::broadcast_by_shares(std::byte* data, int64_t elements, int64_t width, int root) {
  const auto begin = [&](int rank) { return share(elements, rank) * width; };
  const auto post = [&](int to, int owner) { wire_->post(to, data + begin(owner), begin(owner + 1) - begin(owner)); };
  const auto fetch = [&](int from, int owner) { wire_->fetch(from, data + begin(owner), begin(owner + 1) - begin(owner)); };
  wire_->greet_all({}, root);
  for (int step = 1; step < size() && rank() == root; ++step) {
    post(wire_->after(step), wire_->after(step));
    post(wire_->after(step), root);
  }
  if (rank() != root) {
    wire_->check_header(root);
    fetch(root, rank());
    for (int step = 1; step < size(); ++step)
      if (wire_->after(step) != root) post(wire_->after(step), rank());
    fetch(root, root);
    for (int step = 1; step < size(); ++step) {
      const int other = wire_->after(step);
      if (other == root) continue;
      wire_->check_header(other);
      fetch(other, other);
    }
  }
  wire_->wait_until_read();
}

void DirectExchange::send(const void* data, int64_t elements, DType dtype, int to, std::string_view label) {
  const CollectiveCall call{Collective::send, ReduceOp::sum, dtype, elements, to, label};
  check_data(call, data);
  check_call(to >= 0 && to < size() && to != rank(), call, "the receiver must be another rank of 0 to ", size() - 1, "; this is rank ",
             rank());
  const auto* const bytes = static_cast<const std::byte*>(data);
  const int64_t length = elements * bytes_of(dtype);
  wire_->in_call(call, 0, [&] {
    if (length <= Wire::kEager) return wire_->send_header(to, {bytes, static_cast<size_t>(length)});
    wire_->send_header(to);
    wire_->post(to, bytes, length);
    wire_->wait_until_read();
  });
}

void DirectExchange::receive(void* data, int64_t elements, DType dtype, int from, std::string_view label) {
  const CollectiveCall call{Collective::receive, ReduceOp::sum, dtype, elements, from, label};
  check_data(call, data);
  check_call(from >= 0 && from < size() && from != rank(), call, "the sender must be another rank of 0 to ", size() - 1, "; this is rank ",
             rank());
  wire_->in_call(call, 0, [&] {
    wire_->check_header(from);
    wire_->fetch(from, data, elements * bytes_of(dtype));
  });
}

/// Two rounds: the numbers, and a byte that says that `exchange` has returned.
void DirectExchange::meet(const CollectiveCall& call, uint64_t detail, uint64_t own, const Exchange& exchange) {
  wire_->in_call(call, detail, [&] {
    numbers_.assign(static_cast<size_t>(size()), own);
    wire_->greet_all();
    wire_->signal_all(std::as_bytes(std::span(&own, 1)));
    wire_->check_headers();
    for (int step = 1; step < size(); ++step)
      wire_->fetch(wire_->after(step), &numbers_[static_cast<size_t>(wire_->after(step))], sizeof own);
    wire_->count_sent(exchange(numbers_));
    wire_->check_failure();
    static constexpr std::byte kHasReturned{1};
    wire_->signal_all({&kHasReturned, 1});
    for (int step = 1; step < size(); ++step) {
      std::byte theirs;
      wire_->fetch(wire_->after(step), &theirs, 1);
    }
    wire_->wait_until_read();
  });
}

void DirectExchange::await(std::string_view what, const std::function<bool()>& is_done) { wire_->await(what, is_done); }

void DirectExchange::barrier(std::string_view label) {
  wire_->in_call({Collective::barrier, ReduceOp::sum, DType::u8, 0, -1, label}, 0, [&] {
    wire_->greet_all();
    wire_->check_headers();
  });
}

}  // namespace st
