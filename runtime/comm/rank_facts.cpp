#include "comm/rank_facts.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/digest.h"
#include "base/error.h"
#include "base/text.h"
#include "comm/rank_texts.h"

namespace st {
namespace {

std::string joined(std::span<const RankFact> facts) {
  std::string all;
  for (const RankFact& fact : facts) all.append(fact.name).append(1, '\0').append(fact.value).append(1, '\0');
  return all;
}

std::vector<RankFact> parted(std::string_view all) {
  std::vector<RankFact> facts;
  while (!all.empty()) {
    std::string name = take_text(all);
    facts.push_back({std::move(name), take_text(all)});
  }
  return facts;
}

std::string value_of(std::span<const RankFact> facts, std::string_view name) {
  const auto found = std::ranges::find(facts, name, &RankFact::name);
  return found == facts.end() ? "nothing" : found->value;
}

/// Names whose values differ, in the order of `a`, then those that only `b` has.
std::vector<std::string> differing(std::span<const RankFact> a, std::span<const RankFact> b) {
  std::vector<std::string> names;
  for (const RankFact& fact : a)
    if (value_of(b, fact.name) != fact.value) names.push_back(fact.name);
  for (const RankFact& fact : b)
    if (std::ranges::find(a, fact.name, &RankFact::name) == a.end()) names.push_back(fact.name);
  return names;
}

}  // namespace

void require_agreement(Communicator& ranks, std::span<const RankFact> facts, std::string_view part,
                       const std::function<int(int rank)>& model) {
  constexpr size_t kHex = 32;  // characters of a digest
  struct Summary {
    std::array<char, kHex> hex;
    int64_t bytes;
  };
  constexpr int64_t kMost = 16 << 20;
  const std::string own = joined(facts);
  Digest digest;
  digest.update(own);
  Summary summary{.hex = {}, .bytes = std::ssize(own)};
  std::ranges::copy(digest.hex(), summary.hex.begin());
  std::vector<Summary> all(static_cast<size_t>(ranks.size()));
  ranks.all_gather(&summary, all.data(), ranks.size() * static_cast<int64_t>(sizeof summary), DType::u8, "agreement");
  const auto model_of = [&](int rank) { return model ? model(rank) : 0; };
  int other = 0;
  const auto hex_of_rank = [&](int rank) { return all[static_cast<size_t>(rank)].hex; };
  while (other < ranks.size() && hex_of_rank(other) == hex_of_rank(model_of(other))) ++other;
  if (other == ranks.size()) return;
  const int first_rank = model_of(other);
  const auto sent_by = [&](int rank) {
    const int64_t bytes = all[static_cast<size_t>(rank)].bytes;
    require(bytes >= 0 && bytes <= kMost, Code::rank_mismatch, part, ": ", text_of_rank(ranks, rank), " makes another call");
    std::string sent = rank == ranks.rank() ? own : std::string(static_cast<size_t>(bytes), '\0');
    ranks.broadcast(sent.data(), bytes, DType::u8, rank, "agreement");
    return parted(sent);
  };
  const std::vector<RankFact> first = sent_by(first_rank), theirs = sent_by(other);
  const std::vector<std::string> names = differing(first, theirs);
  require(!names.empty(), Code::internal, part, ": ranks disagree, but their facts are equal");
  const std::string more = names.size() == 1 ? "" : text(", and ", names.size() - 1, " more: ", names[1], names.size() == 2 ? "" : ", ..");
  refuse_rank(
      ranks, other, "",
      text(part, ": the ranks do not agree: ", text_of_rank(ranks, other), " has ", names.front(), " ", value_of(theirs, names.front()),
           ", rank ", first_rank, " has ", value_of(first, names.front()), more, "; make them equal on all ranks"));
}

void require_agreement(Communicator& ranks, size_t count, const std::function<RankFact(size_t i)>& fact, std::string_view part) {
  constexpr size_t kAtOnce = 64;
  std::vector<RankFact> facts;
  for (size_t i = 0; i < count;) {
    facts.clear();
    for (const size_t end = std::min(i + kAtOnce, count); i < end; ++i) facts.push_back(fact(i));
    require_agreement(ranks, facts, part);
  }
}

}  // namespace st
