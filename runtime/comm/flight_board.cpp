#include "comm/flight_board.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "base/os.h"
#include "base/text.h"
#include "base/utf8.h"

namespace st {
namespace {

/// A record as it lies on the board.
struct Shown {
  uint64_t sequence = 0;
  int64_t elements = 0, bytes = 0;
  double began = 0, ended = 0;
  int32_t root = -1;
  uint8_t what = 0, op = 0, dtype = 0, unused = 0;
  std::array<char, 48> label{};
};
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

/// Of any bytes.
std::optional<FlightRecord> record_of(const Words& words) {
  Shown shown;
  std::memcpy(static_cast<void*>(&shown), words.data(), sizeof shown);
  if (shown.sequence == 0 || shown.dtype < static_cast<int>(DType::f32) || shown.dtype > static_cast<int>(DType::boolean))
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
    place.words[i].store(words[i], std::memory_order_release);  // who reads it finds the version odd, or later
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

std::string merged_text(const std::vector<const FlightBoard*>& boards) {
  struct Ranks {
    std::vector<int> done, under_way;
    double longest = 0, since = os::seconds();
  };
  std::map<std::pair<uint64_t, std::string>, Ranks> calls;
  for (size_t rank = 0; rank < boards.size(); ++rank) {
    if (boards[rank] == nullptr) continue;
    for (const FlightRecord& record : boards[rank]->shown()) {
      std::string call = text_of(record.call);
      if (record.label[0] != 0) call += text(' ', record.label.data());
      Ranks& ranks = calls[{record.sequence, std::move(call)}];
      (record.ended == 0 ? ranks.under_way : ranks.done).push_back(static_cast<int>(rank));
      if (record.ended == 0)
        ranks.since = std::min(ranks.since, record.began);
      else
        ranks.longest = std::max(ranks.longest, record.ended - record.began);
    }
  }
  std::string out;
  for (const auto& [call, ranks] : calls) {
    out += text(out.empty() ? "#" : "\n#", call.first, ' ', call.second, ": ");
    if (!ranks.done.empty()) out += text(ranks_text(ranks.done), " in ", ranks.longest * 1e3, " ms");
    if (!ranks.done.empty() && !ranks.under_way.empty()) out += "; ";
    if (!ranks.under_way.empty()) out += text(ranks_text(ranks.under_way), " under way for ", os::seconds() - ranks.since, " s");
  }
  return out;
}

}  // namespace st
