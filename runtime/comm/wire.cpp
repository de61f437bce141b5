#include "comm/wire.h"

#include <cstring>
#include <new>
#include <utility>

#include "base/os/machine.h"
#include "base/text.h"
#include "base/vector_copy.h"
#include "comm/text_of_seconds.h"

namespace st {
namespace {

constexpr uint32_t kMagic = 0x53544331;  // "STC1"; a changed layout gets another number
constexpr double kLook = 0.05;           // longest sleep in seconds: how soon a cancellation is seen
constexpr double kShortest = 0.5;        // seconds of silence that mean anything; a busy machine delays a sign of life

bool is_single(Collective what) { return what == Collective::send || what == Collective::receive; }

}  // namespace

/// Precedes the elements of each call in each stream; the same bytes on both ranks.
struct Wire::Header {
  uint32_t magic = kMagic;
  uint8_t what = 0, op = 0, dtype = 0, unused = 0;
  uint64_t sequence = 0;
  int64_t elements = 0;
  uint64_t detail = 0;
  int32_t root = -1;
  int32_t size = 0;

  bool operator==(const Header&) const = default;

  /// Accepts any bytes.
  std::string text() const {
    if (dtype < static_cast<int>(DType::f32) || dtype > static_cast<int>(DType::boolean)) return "an unknown collective";
    return CallUnderWay{{static_cast<Collective>(what), static_cast<ReduceOp>(op), static_cast<DType>(dtype), elements, root, {}}, sequence}
        .text();
  }
};

struct Wire::Patience {
  double began = os::seconds(), looked = began;
  bool has_warned = false;
  uint64_t read = 0;  // by the awaited rank
};

void check_options(const CommunicatorOptions& options) {
  check(options.deadline > 0, "communicator: the deadline must be positive, got ", options.deadline, " s");
  check(options.chunk >= 1 && options.chunk <= 1 << 24, "communicator: chunk must be 1 to 2^24 elements, got ", options.chunk);
}

Wire::Wire(std::unique_ptr<Transport> transport, CommunicatorOptions options, std::shared_ptr<SharedTransport> shared)
    : transport_(std::move(transport)),
      first_(*transport_),
      shared_(std::move(shared)),
      rank_(transport_->rank()),
      size_(transport_->size()),
      options_(std::move(options)),
      recorder_(transport_->board(transport_->rank())),
      eager_(sizeof(Header) + kEager),
      peers_(static_cast<size_t>(size_)) {
  check_options(options_);
}

Wire::~Wire() {
  try {
    const double end = os::seconds() + options_.deadline;
    for (int other = 0; other < size() && !is_over_; ++other)
      while (!transport_->is_sent(other) && !transport_->has_left(other) && !transport_->failure() && os::seconds() < end)
        if (!transport_->progress()) transport_->idle(kLook);
  } catch (...) {  // no memory for a failure's reason: the group is over
  }
  transport_->withdraw();  // memory that others may still read is freed after this
}

void Wire::abort(std::string_view reason) noexcept {
  try {
    first_.abort({whole_rank(rank()), Code::rank_failed, text("it has aborted: ", reason)});
  } catch (const std::bad_alloc&) {
    first_.abort({whole_rank(rank()), Code::rank_failed, "it has aborted"});  // short enough not to allocate
  }
}

bool Wire::has_ended() { return is_over_ || transport_->failure().has_value(); }

// The call and its end.

void Wire::begin(const CollectiveCall& call, uint64_t detail) {
  if (over_) throw Error(*over_);
  if (is_over_)
    fail(Code::rank_failed,
         text(text_of(call), ": an earlier collective of rank ", rank(), " failed and ended the group; make a new communicator"));
  here_.call = call;
  here_.sequence = call.what == Collective::send      ? ++peers_[static_cast<size_t>(call.root)].sent
                   : call.what == Collective::receive ? ++peers_[static_cast<size_t>(call.root)].received
                                                      : ++sequence_;
  detail_ = detail;
  sent_before_ = sent_bytes();
  for (Peer& peer : peers_) peer.is_met = false;
  recorder_.begin(here_.sequence, call);
  if (const auto failure = transport_->failure()) end_group(*failure);
}

void Wire::end() {
  wait_for_all(Awaited::room);  // or the rest would stay unsent while this rank computes and others wait for it
  recorder_.end(sent_bytes() - sent_before_);
  here_.call.label = {};  // borrowed from the caller
}

void Wire::give_up() noexcept {
  is_over_ = true;
  transport_->abort(
      {whole_rank(rank()), Code::rank_failed, "it has failed"});  // if nothing else has ended the group; short enough not to allocate
  transport_->withdraw();
  here_.call.label = {};
}

void Wire::end_group(const RankFailure& failure) {
  transport_->abort(failure);
  throw over_.emplace(group_error(failure, here_, *transport_, recorder_));
}

void Wire::cancel() {
  transport_->abort({whole_rank(rank()), Code::rank_failed, "it has aborted: cancelled"});
  over_.emplace(Code::cancelled, text(here_.text(), ": cancelled; the group has ended"));
  over_->place.collective = name_of(here_.call.what);
  throw Error(*over_);
}

// Headers.

Wire::Header Wire::header(int receiver) const {
  const CollectiveCall& call = here_.call;
  const bool single = is_single(call.what);
  return {.magic = kMagic,
          .what = static_cast<uint8_t>(single ? Collective::send : call.what),
          .op = static_cast<uint8_t>(is_reduction(call.what) ? call.op : ReduceOp::sum),
          .dtype = static_cast<uint8_t>(call.dtype),
          .unused = 0,
          .sequence = here_.sequence,
          .elements = call.elements,
          .detail = detail_,
          .root = single ? receiver : call.root,
          .size = size()};
}

std::span<const std::byte> Wire::prepare(int to, std::span<const std::byte> eager) {
  wait_until_read();  // the previous call
  const Header ours = header(to);
  std::memcpy(eager_.data(), &ours, sizeof ours);
  if (!eager.empty()) std::memcpy(eager_.data() + sizeof ours, eager.data(), eager.size());
  return std::span(eager_).first(sizeof ours + eager.size());
}

void Wire::send_header(int to, std::span<const std::byte> eager) {
  transport_->post(to, prepare(to, eager));
  sent_bytes_.fetch_add(std::ssize(eager), std::memory_order_relaxed);
}

void Wire::greet_all(std::span<const std::byte> eager, int but) {
  const auto bytes = prepare(-1, eager);
  for (int step = 1; step < size(); ++step) {
    const int to = after(step);
    if (to == but) continue;
    transport_->post(to, bytes);
    sent_bytes_.fetch_add(std::ssize(eager), std::memory_order_relaxed);
  }
}

void Wire::check_header(int from) {
  Header theirs;
  fetch(from, &theirs, sizeof theirs);
  const Header ours = header(rank());
  if (theirs != ours) refuse(from, theirs, ours);
  peers_[static_cast<size_t>(from)].is_met = true;
}

void Wire::check_headers() {
  for (int step = 1; step < size(); ++step) check_header(after(step));
}

void Wire::refuse(int from, const Header& theirs, const Header& ours) {
  if (theirs.magic != ours.magic)
    end_group(
        {whole_rank(from), Code::rank_mismatch,
         "it sent an invalid header: it runs another version of the library, or its memory is damaged; run one version on all ranks"});
  std::string reason = text(in_group(), "it calls ", theirs.text(), " where rank ", whole_rank(rank()), " calls ", here_.text());
  if (theirs.size != ours.size) reason += text("; its group has ", theirs.size, " ranks, this one ", ours.size);
  if (theirs.what == ours.what && theirs.detail != ours.detail) reason += "; they shard the elements differently";
  reason += "; all ranks must make the same calls in the same order";
  end_group({whole_rank(from), Code::rank_mismatch, std::move(reason)});
}

// Elements.

void Wire::post(int to, const void* data, int64_t bytes) {
  transport_->post(to, {static_cast<const std::byte*>(data), static_cast<size_t>(bytes)});
  sent_bytes_.fetch_add(bytes, std::memory_order_relaxed);
}

void Wire::signal_all(std::span<const std::byte> bytes) {
  for (int step = 1; step < size(); ++step) transport_->post(after(step), bytes);
}

void Wire::check_failure() {
  if (const auto failure = transport_->failure()) end_group(*failure);
}

void Wire::fetch(int from, void* to, int64_t bytes) {
  each_run(from, bytes, 1, [&](int64_t offset, const std::byte* data, int64_t count) {
    vector_copy(static_cast<std::byte*>(to) + offset, data, static_cast<size_t>(count));
  });
}

// Groups.

/// "in the group of ranks 3, 4, 5, ", for ranks that are not in it; empty for the group of all ranks.
std::string Wire::in_group() const {
  constexpr int kNamed = 6;
  if (&first_.whole() == &first_ || size() == first_.whole().size()) return {};
  std::string out = "in the group of ranks ";
  for (int rank = 0; rank < std::min(size(), kNamed); ++rank) out += text(whole_rank(rank), ", ");
  return size() > kNamed ? out + ".., " : out;
}

uint32_t Wire::reserve_group() { return shared_ ? shared_->reserve() : SharedTransport::kFirst; }

void Wire::release_group(uint32_t number) noexcept {
  if (shared_) shared_->release(number);
}

std::unique_ptr<Wire> Wire::open_group(uint32_t number, std::vector<SharedTransport::Member> members, int rank,
                                       CommunicatorOptions options) {
  if (!shared_) {
    auto shared = std::make_shared<SharedTransport>(*transport_, options_.deadline);
    std::vector<SharedTransport::Member> all;
    for (int other = 0; other < size(); ++other) all.push_back({other, SharedTransport::kWhole});
    auto end = shared->open(SharedTransport::kWhole, std::move(all), rank_);
    shared->own(std::exchange(transport_, std::move(end)));
    shared_ = std::move(shared);
  }
  for (SharedTransport::Member& member : members) member.rank = transport_->whole_rank(member.rank);
  if (!options.warn) options.warn = options_.warn;
  return std::make_unique<Wire>(shared_->open(number, std::move(members), rank), std::move(options), shared_);
}

// Waits.

std::span<const std::byte> Wire::arrived(int from) {
  transport_->progress();  // our own posts move too, however much there is to read
  if (const auto bytes = transport_->arrived(from); !bytes.empty()) return bytes;
  wait(from, Awaited::bytes);
  return transport_->arrived(from);
}

bool Wire::is_there(int other, Awaited awaited) {
  if (awaited == Awaited::bytes) return !transport_->arrived(other).empty();
  return awaited == Awaited::reader ? transport_->is_sent(other) : transport_->is_handed_over(other);
}

void Wire::wait_for_all(Awaited awaited) {
  for (int other = 0; other < size(); ++other)
    if (!is_there(other, awaited)) wait(other, awaited);
}

void Wire::wait(int other, Awaited awaited) {
  for (Patience patience;;) {
    const bool has_left = transport_->has_left(other);
    const bool has_moved = transport_->progress();
    if (is_there(other, awaited)) return;
    const uint64_t read = transport_->read_by(other);
    if (awaited != Awaited::bytes && (has_moved || read != patience.read)) {
      patience = {};
      patience.read = read;
    }
    look_around(other, patience);  // first: a rank may have left because another one failed
    if (has_left) end_group({whole_rank(other), Code::rank_failed, text(in_group(), "it has left the group")});
    if (!has_moved) transport_->idle(std::min(kLook, options_.deadline / 4));
  }
}

void Wire::await(std::string_view what, const std::function<bool()>& is_done) {
  constexpr double kPoll = 1e-4;  // longest sleep in seconds
  for (Patience patience; !is_done();) {
    const bool has_moved = transport_->progress();
    if (look_around(patience) > options_.deadline) {
      for (int other = 0; other < size(); ++other)  // not before: its part may be done
        if (other != rank_ && transport_->has_left(other))
          end_group({whole_rank(other), Code::rank_failed, text(in_group(), "it has left the group")});
      for (int rank = 0; rank < first_.whole().size(); ++rank)
        if (silence_of(rank) >= long_silence()) end_group(silence_of_rank(rank));
      end_group({whole_rank(rank_), Code::timeout,
                 text(in_group(), "it has waited ", options_.deadline, " s for ", what, ", and no rank is silent")});
    }
    if (!has_moved) transport_->idle(kPoll);
  }
}

/// Throws if the group has ended, or should. Returns for how long this rank has waited, in seconds.
double Wire::look_around(Patience& patience) {
  if (const auto failure = transport_->failure()) end_group(*failure);
  if (options_.is_cancelled && options_.is_cancelled()) cancel();
  const double now = os::seconds();
  if (now - patience.looked > 1) patience.began += now - patience.looked;  // this process itself was stopped
  patience.looked = now;
  return now - patience.began;
}

void Wire::look_around(int other, Patience& patience) {
  const double waited = look_around(patience);
  if (waited > options_.deadline && (!options_.waits_for_living || is_silent(who_is_late(other)))) time_out(other);
  if (waited < options_.deadline / 4 || patience.has_warned || !options_.warn || options_.waits_for_living) return;
  patience.has_warned = true;
  options_.warn(text(here_.text(), ": rank ", rank(), " has waited ", text_of_seconds(waited), " for ",
                     text_of_whole_rank(*transport_, who_is_late(other)), "; the deadline is ", options_.deadline, " s"));
}

double Wire::silence_of(int whole_rank) const {
  const Transport& whole = first_.whole();
  return whole.has_left(whole_rank) ? 0 : whole.silence_of(whole_rank);
}

bool Wire::is_silent(int whole_rank) const {
  return silence_of(whole_rank) >= (options_.waits_for_living ? std::max(options_.deadline, kShortest) : long_silence());
}

double Wire::long_silence() const { return std::clamp(options_.deadline / 2, kShortest, 2.0); }

RankFailure Wire::silence_of_rank(int whole_rank) const {
  return {whole_rank, Code::timeout,
          text("it has given no sign of life for ", text_of_seconds(silence_of(whole_rank)),
               ": its process is stopped or its machine hangs; resume or replace it, then restart the group")};
}

/// The number in the whole group: the awaited rank may itself be waiting for a rank that is silent, also in another group.
int Wire::who_is_late(int other) const {
  const int awaited = whole_rank(other);
  if (is_silent(awaited)) return awaited;
  for (int rank = 0; rank < first_.whole().size(); ++rank)
    if (is_silent(rank)) return rank;
  return awaited;
}

void Wire::time_out(int other) {
  const int late = who_is_late(other);
  if (is_silent(late)) end_group(silence_of_rank(late));
  end_group(
      {late, Code::timeout,
       text(in_group(), "it is alive but has ",
            peers_[static_cast<size_t>(other)].is_met ? "made no progress in this collective for " : "not entered this collective for ",
            options_.deadline, " s: it is computing or waiting for something else; raise the deadline if it is only slow")});
}

}  // namespace st
