#include "comm/local/shared_segment.h"

#include <algorithm>
#include <bit>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/os/machine.h"
#include "base/os/shared_word.h"
#include "base/text.h"
#include "base/utf8.h"
#include "comm/local/process_group.h"

namespace st {

namespace {
constexpr size_t kHeardWords = kMaxProcessRanks / 64 + 1;  // a rank that joins with another size may have any number
}

struct SharedSegment::Header {
  SegmentShape shape;
  alignas(64) std::atomic<uint32_t> rings_are_open;
  alignas(64) std::atomic<uint32_t> end;  // an End: the state of the fields up to end_at
  int32_t end_rank, end_code;
  std::array<char, 200> end_reason;
  double end_at;                                         // os::seconds()
  std::atomic<int32_t> ranks_to_hear;                    // number of ranks that must receive the refusal; 0: not refused
  std::array<std::atomic<uint64_t>, kHeardWords> heard;  // one bit per rank
};

namespace {

enum End : uint32_t { none, being_written, written };

int64_t whole_pages(int64_t bytes) { return (bytes + os::SharedFile::kPage - 1) / os::SharedFile::kPage * os::SharedFile::kPage; }

/// Truncates to the room; fills the rest with zeros.
template <size_t kRoom>
void put_text(std::array<char, kRoom>& room, std::string_view text) {
  room.fill(0);
  std::copy_n(text.begin(), std::min(text.size(), kRoom - 1), room.begin());
}

/// Text that another process has written, up to the first byte that is not UTF-8.
template <size_t kRoom>
std::string text_in(const std::array<char, kRoom>& room) {
  std::string out(room.begin(), std::find(room.begin(), room.end(), '\0'));
  out.resize(utf8_valid_until(out));
  return out;
}

/// Layout of the file: the header and a slot per rank; from a page boundary, the counters of all rings; from another, their bytes.
struct SegmentPlan {
  int64_t head, counts, rings;
  SegmentPlan(const SegmentShape& shape, int64_t header) {
    const int64_t size = shape.size;
    head = whole_pages(header + size * static_cast<int64_t>(sizeof(RankSlot)));
    counts = whole_pages(size * size * static_cast<int64_t>(sizeof(RingCounts)));
    rings = counts + size * (size - 1) * shape.ring_bytes;
  }
};

bool is_possible(const SegmentShape& shape) {
  return shape.size >= 1 && shape.size <= kMaxProcessRanks && shape.ring_bytes > 0 && shape.ring_bytes <= kMaxRingBytes &&
         (shape.ring_bytes & (shape.ring_bytes - 1)) == 0;
}

}  // namespace

SegmentShape shape_of(int size, int64_t ring_bytes) {
  SegmentShape shape;
  shape.size = size;
  shape.ring_bytes = ring_bytes;
  put_text(shape.version, ST_LIBRARY_VERSION);
  return shape;
}

std::string text_of(const SegmentShape& shape) {
  return text(shape.size, shape.size == 1 ? " rank" : " ranks", ", rings of ", text_of_bytes(shape.ring_bytes), ", version ",
              text_in(shape.version));
}

SharedSegment::SharedSegment(os::SharedFile file, os::SharedPages head, const SegmentShape& shape)
    : file_(std::move(file)), head_(std::move(head)), shape_(shape) {}

SharedSegment SharedSegment::make(const SegmentShape& shape) {
  const SegmentPlan plan(shape, sizeof(Header));
  auto file = os::SharedFile::make();
  file.reserve(plan.head);
  SharedSegment segment(std::move(file), {}, shape);
  segment.head_ = segment.file_.map(0, plan.head);
  segment.header().shape = shape;
  return segment;
}

std::optional<SharedSegment> SharedSegment::open(const std::string& name) {
  auto file = os::SharedFile::open(name);
  if (!file) return std::nullopt;
  const auto refuse = [&](const std::string& what) {
    Error error(Code::rank_mismatch, text("process group: ", file->path(), " was ", what, "; remove it if its job is no longer running"));
    error.place.file = file->path();
    throw error;
  };
  const SegmentShape ours;
  SegmentShape shape;
  if (file->size() >= os::SharedFile::kPage)
    shape = reinterpret_cast<const Header*>(file->map(0, os::SharedFile::kPage).bytes().data())->shape;
  if (file->size() < os::SharedFile::kPage || shape.magic != ours.magic) refuse("not made by this library");
  if (shape.layout != ours.layout || !is_possible(shape))
    refuse(text("made by version ", text_in(shape.version), " of this library, this one is ", ST_LIBRARY_VERSION));
  const SegmentPlan plan(shape, sizeof(Header));
  if (file->size() < plan.head) refuse("truncated");
  auto head = file->map(0, plan.head);
  return SharedSegment(std::move(*file), std::move(head), shape);
}

SharedSegment::Header& SharedSegment::header() const { return *reinterpret_cast<Header*>(head_.bytes().data()); }

RankSlot& SharedSegment::slot(int rank) const { return reinterpret_cast<RankSlot*>(head_.bytes().data() + sizeof(Header))[rank]; }

void SharedSegment::enter(int rank) {
  RankSlot& own = slot(rank);
  own.process = os::process_id();
  put_text(own.host, os::host_name());
  own.is_here.store(1);
}

bool SharedSegment::all_are_here() const {
  for (int rank = 0; rank < size(); ++rank)
    if (slot(rank).is_here.load() == 0) return false;
  return true;
}

bool SharedSegment::is_dead(int rank) const { return (slot(rank).life.load() & os::OwnedWord::kOwnerDied) != 0; }
bool SharedSegment::has_left(int rank) const { return slot(rank).life.load() == RankSlot::kLeft; }

bool SharedSegment::is_spoilt() const {
  for (int rank = 0; rank < size(); ++rank)
    if (is_dead(rank) || has_left(rank)) return true;
  return header().end.load() != none;
}

std::string SharedSegment::host_of(int rank) const {
  const RankSlot& of = slot(rank);
  return of.is_here.load() == 0 ? std::string() : text(text_in(of.host), ", process ", of.process);
}

void SharedSegment::open_rings() {
  const SegmentPlan plan(shape_, sizeof(Header));
  file_.reserve(plan.head + plan.rings);
  header().rings_are_open.store(1);
  os::wake_sleepers(header().rings_are_open);
}

bool SharedSegment::are_rings_open() const { return header().rings_are_open.load() != 0; }
void SharedSegment::wait_until_open(double seconds) const { os::sleep_while(header().rings_are_open, 0, seconds); }

void SharedSegment::map_rings() {
  const SegmentPlan plan(shape_, sizeof(Header));
  rings_ = file_.map(plan.head, plan.rings);
}

ByteRing SharedSegment::ring(int from, int to) const {
  const SegmentPlan plan(shape_, sizeof(Header));
  const int64_t pair = int64_t{from} * (size() - 1) + (to < from ? to : to - 1);
  std::byte* start = rings_.bytes().data();
  return {reinterpret_cast<RingCounts*>(start) + pair, start + plan.counts + pair * shape_.ring_bytes,
          static_cast<uint64_t>(shape_.ring_bytes)};
}

void SharedSegment::abort(const RankFailure& failure) noexcept {
  Header& all = header();
  uint32_t is_whole = none;
  if (!all.end.compare_exchange_strong(is_whole, being_written)) return;
  all.end_rank = failure.rank;
  all.end_code = static_cast<int32_t>(failure.code);
  put_text(all.end_reason, failure.reason);
  all.end_at = os::seconds();
  all.end.store(written);
  os::wake_sleepers(all.rings_are_open);
  wake_all();
}

std::optional<RankFailure> SharedSegment::failure() const {
  const Header& all = header();
  if (all.end.load() == written) {
    const bool is_code = all.end_code > static_cast<int32_t>(Code::ok) && all.end_code <= static_cast<int32_t>(Code::internal);
    return RankFailure{all.end_rank >= 0 && all.end_rank < size() ? all.end_rank : -1,
                       is_code ? static_cast<Code>(all.end_code) : Code::rank_failed, text_in(all.end_reason)};
  }
  for (int rank = 0; rank < size(); ++rank)
    if (is_dead(rank)) return RankFailure{rank, Code::rank_failed, "its process has ended; its own output or exit status says why"};
  return std::nullopt;
}

void SharedSegment::refuse(const RankFailure& failure, int ranks) noexcept {
  int32_t none_yet = 0;
  header().ranks_to_hear.compare_exchange_strong(none_yet, ranks);
  abort(failure);
}

std::optional<RankFailure> SharedSegment::refusal_for(int rank) const {
  const Header& all = header();
  if (all.end.load() != written || all.ranks_to_hear.load() == 0 || os::process_start() > all.end_at) return std::nullopt;
  const auto bit = static_cast<size_t>(rank);
  if ((all.heard[bit / 64].load() >> (bit % 64) & 1) != 0) return std::nullopt;
  return failure();
}

bool SharedSegment::is_last_to_hear(int rank) noexcept {
  Header& all = header();
  const auto bit = static_cast<size_t>(rank);
  all.heard[bit / 64].fetch_or(uint64_t{1} << (bit % 64));
  int heard = 0;
  for (const auto& word : all.heard) heard += std::popcount(word.load());
  return heard >= all.ranks_to_hear.load();
}

/// All ranks that were in it died or left at least `seconds` ago. A refusal stays that long, too.
bool SharedSegment::is_abandoned(double seconds) const {
  const auto before = static_cast<int64_t>((os::seconds() - seconds) * 1e9);
  bool was_used = false;
  for (int rank = 0; rank < size(); ++rank) {
    if (slot(rank).life.load() == 0) continue;
    if (!(is_dead(rank) || has_left(rank)) || slot(rank).beat.load() > before) return false;
    was_used = true;
  }
  return was_used;
}

void SharedSegment::remove_leftovers(double seconds) {
  for (const std::string& name : os::SharedFile::names()) {
    try {
      if (auto segment = open(name); segment && segment->is_abandoned(seconds)) segment->file().remove_name();
    } catch (const Error&) {  // another version's, or no segment: leave it alone
      continue;
    }
  }
}

void SharedSegment::sleep(int rank, Wait wait, double seconds) const { os::sleep_while(slot(rank).asleep, wait, seconds); }

void SharedSegment::wake(int rank, Wait wait) const noexcept {
  auto& asleep = slot(rank).asleep;
  if (asleep.load() >= static_cast<uint32_t>(wait) && asleep.exchange(0) != 0) os::wake_sleepers(asleep);
}

void SharedSegment::wake_all() const noexcept {
  for (int rank = 0; rank < size(); ++rank) wake(rank, for_bytes);
}

}  // namespace st
