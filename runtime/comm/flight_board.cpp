#include "comm/flight_board.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "base/os/machine.h"
#include "base/text.h"
#include "base/utf8.h"
#include "comm/text_of_seconds.h"

namespace st {
namespace {

/// A record as it is stored on the board.
struct Shown {
  uint64_t sequence = 0;
  int64_t elements = 0, bytes = 0;
  double began = 0, ended = 0;
  int32_t root = -1;
  uint8_t what = 0, op = 0, dtype = 0, unused = 0;
  std::array<char, 48> label{};
};
constexpr size_t kMostLines = 24;  // in an error: ranks that differ, or whose board is damaged, each get their own lines
constexpr size_t kShownWords = sizeof(Shown) / sizeof(uint64_t) + (sizeof(Shown) % sizeof(uint64_t) == 0 ? 0 : 1);
using Words = std::array<uint64_t, kShownWords>;

Words words_of(const FlightRecord& record) {
  Shown shown{.sequence = record.sequence,
              .elements = record.call.elements,
              .bytes = record.bytes,
              .began = record.began,
              .ended = record.ended,
              .root = record.call.root,
              .what = static_cast<uint8_t>(record.call.what),
              .op = static_cast<uint8_t>(record.call.op),
              .dtype = static_cast<uint8_t>(record.call.dtype),
              .unused = 0,
              .label = record.label};
  Words words{};
  std::memcpy(words.data(), &shown, sizeof shown);
  return words;
}

bool is_time(double seconds) { return seconds >= 0 && seconds < 1e12; }  // excludes NaN, which would break the sort

/// Accepts any bytes; nullopt if they are no record.
std::optional<FlightRecord> record_of(const Words& words) {
  Shown shown;
  std::memcpy(static_cast<void*>(&shown), words.data(), sizeof shown);
  if (shown.sequence == 0 || shown.dtype < static_cast<int>(DType::f32) || shown.dtype > static_cast<int>(DType::boolean) ||
      !is_time(shown.began) || !is_time(shown.ended))
    return std::nullopt;
  FlightRecord record;
  record.sequence = shown.sequence;
  record.call = {static_cast<Collective>(shown.what),
                 static_cast<ReduceOp>(shown.op),
                 static_cast<DType>(shown.dtype),
                 shown.elements,
                 shown.root,
                 {}};
  record.bytes = shown.bytes;
  record.began = shown.began;
  record.ended = shown.ended;
  shown.label.back() = '\0';
  const std::string_view label = shown.label.data();
  std::copy_n(label.data(), utf8_valid_until(label), record.label.data());
  std::ranges::replace_if(
      record.label, [](char c) { return (c > 0 && c < ' ') || c == '\x7f'; }, '?');  // keeps a record on one line
  return record;
}

/// "ranks 0, 1, 2 and 5 more in 0.2 ms"
std::string ranks_text(const std::vector<int>& ranks) {
  constexpr size_t kNamed = 8;
  std::string out = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < std::min(ranks.size(), kNamed); ++i) out += text(i == 0 ? "" : ", ", ranks[i]);
  return ranks.size() <= kNamed ? out : out + text(" and ", ranks.size() - kNamed, " more");
}

}  // namespace

void FlightBoard::show(uint64_t count, const FlightRecord& record) noexcept {
  static_assert(kWords == kShownWords);
  Place& place = places_[count % kShown];
  const Words words = words_of(record);
  const uint64_t version = place.version.load(std::memory_order_relaxed);
  place.version.store(version | 1, std::memory_order_relaxed);
  for (size_t i = 0; i < kWords; ++i)
    place.words[i].store(words[i], std::memory_order_release);  // a reader of this word then sees the odd version or a later one
  place.version.store((version | 1) + 1, std::memory_order_release);
}

std::vector<FlightRecord> FlightBoard::shown() const {
  std::vector<FlightRecord> records;
  for (const Place& place : places_) {
    Words words{};
    const uint64_t before = place.version.load(std::memory_order_acquire);
    for (size_t i = 0; i < kWords; ++i) words[i] = place.words[i].load(std::memory_order_acquire);
    if (before % 2 != 0 || place.version.load(std::memory_order_relaxed) != before) continue;
    if (auto record = record_of(words)) records.push_back(*record);
  }
  return records;
}

namespace {

/// A collective of all ranks, or one rank's send or receive, whose sequence numbers count the messages between two ranks.
struct SharedCall {
  uint64_t sequence = 0;
  int alone = -1;
  std::string text;
  std::vector<int> done = {}, under_way = {};
  double began = 0, longest = 0, since = 0;  // first begin of any rank; longest time of a rank that is done; first begin of one that is not

  bool is(const SharedCall& other) const { return sequence == other.sequence && alone == other.alone && text == other.text; }
};

SharedCall call_of(const FlightRecord& record, int rank) {
  const bool is_single = record.call.what == Collective::send || record.call.what == Collective::receive;
  SharedCall call{.sequence = record.sequence, .alone = is_single ? rank : -1, .text = text_of(record.call)};
  if (record.label[0] != 0) call.text += text(' ', record.label.data());
  call.began = record.began;
  return call;
}

void add(SharedCall& call, const FlightRecord& record, int rank) {
  call.began = std::min(call.began, record.began);
  if (record.ended == 0) {
    call.since = call.under_way.empty() ? record.began : std::min(call.since, record.began);
    call.under_way.push_back(rank);
  } else {
    call.longest = std::max(call.longest, record.ended - record.began);
    call.done.push_back(rank);
  }
}

}  // namespace

std::string merged_text(const std::vector<const FlightBoard*>& boards) {
  std::vector<SharedCall> calls;
  for (size_t rank = 0; rank < boards.size(); ++rank) {
    if (boards[rank] == nullptr) continue;
    for (const FlightRecord& record : boards[rank]->shown()) {
      SharedCall call = call_of(record, static_cast<int>(rank));
      const auto known = std::ranges::find_if(calls, [&](const SharedCall& one) { return one.is(call); });
      add(known == calls.end() ? calls.emplace_back(std::move(call)) : *known, record, static_cast<int>(rank));
    }
  }
  // Sorted by the clock, which the ranks share, because sequence numbers of messages count per pair of ranks. Running calls come last, so
  // they are never left out.
  std::ranges::stable_sort(calls, {}, [](const SharedCall& call) { return std::pair(!call.under_way.empty(), call.began); });
  const size_t left_out = calls.size() - std::min(calls.size(), kMostLines);
  std::string out;
  if (left_out > 0) out = text("(", left_out, " earlier ones are left out)");
  for (const SharedCall& call : std::span(calls).subspan(left_out)) {
    out += text(out.empty() ? "#" : "\n#", call.sequence, ' ', call.text, ": ");
    if (!call.done.empty()) out += text(ranks_text(call.done), " in ", text_of_seconds(call.longest));
    if (!call.done.empty() && !call.under_way.empty()) out += "; ";
    if (!call.under_way.empty()) out += text(ranks_text(call.under_way), " under way for ", text_of_seconds(os::seconds() - call.since));
  }
  return out;
}

}  // namespace st
