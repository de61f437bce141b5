// Whether all ranks exchange the same gradients, before the first is exchanged.
#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "base/error.h"
#include "base/text.h"
#include "base/utf8.h"
#include "comm/call_checks.h"
#include "parts/gradient_exchange.h"

namespace st {
namespace {

constexpr size_t kShown = 120;  // bytes of a description
using Description = std::array<char, kShown>;

Description shown(std::string_view what) {
  Description made{};
  std::ranges::copy(what.substr(0, utf8_valid_until(what.substr(0, kShown - 1))), made.begin());
  return made;
}

/// The end of a text that is too long to be shown whole.
std::string_view end_of(std::string_view what) {
  what.remove_prefix(what.size() - std::min(what.size(), kShown - 1));
  while (!what.empty() && (static_cast<unsigned char>(what.front()) & 0xC0) == 0x80) what.remove_prefix(1);  // of a letter that was cut
  return what;
}

uint64_t hash_of(std::string_view text) {
  AlikeOnAll hash;
  for (const char c : text) hash.add(c);
  return hash.value();
}

}  // namespace

void require_same_exchange(Communicator& ranks, std::span<const ExchangedGradient> gradients, ReduceOp op, int64_t bucket_bytes) {
  const auto size = static_cast<size_t>(ranks.size());
  /// All ranks' records, of `count` elements each.
  const auto gather = [&](const auto& own, auto& all) {
    ranks.all_gather(own.data(), all.data(), static_cast<int64_t>(all.size() * sizeof all[0]), DType::u8, "agreement");
  };
  const auto refuse_where_different = [&](std::string_view own) {
    const std::array<Description, 1> mine = {shown(own)};
    std::vector<Description> all(size);
    gather(mine, all);
    const auto other = std::ranges::find_if(all, [&](const Description& theirs) { return theirs != all[0]; });
    if (other == all.end()) return;
    const auto rank = static_cast<int>(other - all.begin());
    refuse_rank(ranks, rank, "",
                text("data parallel: ranks do not reduce the same gradients: ", text_of_rank(ranks, rank), " has ", other->data(),
                     ", rank 0 has ", all[0].data(), "; give all ranks the same gradients, in the same order, and the same options"));
  };
  refuse_where_different(
      text(gradients.size(), " gradients, by ", op == ReduceOp::mean ? "mean" : "sum", ", in buckets of ", bucket_bytes, " bytes"));

  const auto description = [&](size_t i) {
    return text("gradient ", i, " of ", gradients[i].elements, " ", gradients[i].dtype, ", \"", gradients[i].name, "\"");
  };
  const size_t count = gradients.size();
  std::vector<uint64_t> own(count), all(count * size);
  for (size_t i = 0; i < count; ++i) own[i] = hash_of(description(i));
  gather(own, all);
  for (size_t i = 0; i < count; ++i) {
    bool is_alike = true;
    for (size_t rank = 1; rank < size; ++rank) is_alike = is_alike && all[rank * count + i] == all[i];
    if (is_alike) continue;
    refuse_where_different(description(i));
    refuse_where_different(end_of(description(i)));
    fail(Code::rank_mismatch, text("data parallel: ranks do not reduce the same gradients: the names of gradient ", i,
                                   " differ in their middle; give all ranks the same gradients, in the same order"));
  }
}

}  // namespace st
