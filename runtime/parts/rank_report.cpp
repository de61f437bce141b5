#include "parts/rank_report.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/text.h"
#include "comm/rank_texts.h"

namespace st {
namespace {

using Call = RankReport::Call;
using From = RankReport::From;

std::string_view name_of(Call call) {
  switch (call) {
    case Call::step:
      return "step";
    case Call::forward:
      return "forward";
    case Call::backward:
      return "backward";
    case Call::apply:
      return "apply";
    default:
      return "sharded optimizer";
  }
}

std::string_view name_of(From from) { return from == From::own_loss ? "the graph's own loss" : "the outputs' gradients"; }

std::string_view name_of_rows(const RankReport& report) {
  return report.rows == RankReport::kFromData ? "reads its data" : "was given rows";
}

/// The first of those that have the same rows.
size_t first_of_rows(std::span<const RankReport> reports, int64_t data_rank) {
  const auto has_them = [&](const RankReport& report) { return report.is_counted != 0 && report.data_rank == data_rank; };
  return static_cast<size_t>(std::ranges::find_if(reports, has_them) - reports.begin());
}

void require_alike(const Communicator& ranks, std::span<const RankReport> reports, size_t rank) {
  const size_t counted = first_counted(reports);
  const RankReport &first = reports[counted], &theirs = reports[rank];
  const auto refuse = [&](const std::string& difference, const char* way_out) {
    refuse_rank(ranks, static_cast<int>(rank), "",
                text(name_of(first.call), ": ", text_of_rank(ranks, static_cast<int>(rank)), difference, "; ", way_out,
                     first.call == Call::step || first.call == Call::sharded_optimizer ? "" : ". The step was rolled back"));
  };
  const auto require_same = [&](const char* what, const auto& of_rank, const auto& of_first, const char* way_out) {
    if (of_rank != of_first) refuse(text(what, of_rank, ", rank ", counted, " ", of_first), way_out);
  };
  constexpr const char *kRun = "run the same step on all ranks", *kResume = "resume all ranks from the same checkpoint",
                       *kAlike = "make them equal on all ranks";
  require_same(" calls ", name_of(theirs.call), name_of(first.call), kRun);
  require_same(" ", name_of_rows(theirs), name_of_rows(first), kAlike);
  if (theirs.from != From::any) {
    require_same(first.call == Call::forward ? " gives inputs for " : " runs backward from ", name_of(theirs.from), name_of(first.from),
                 kRun);
    const size_t same = first_of_rows(reports, theirs.data_rank);
    if (same < reports.size() && theirs.gradients != reports[same].gradients)
      refuse(text(" gives other gradients than rank ", same, ", which has the same rows"),
             "give the same on all ranks along the tensor axis");
  }
  require_same(" has attempted steps: ", theirs.attempts, first.attempts, kResume);
  require_same(" has taken data items: ", theirs.items, first.items, kResume);
  require_same(" has loss scale ", theirs.loss_scale, first.loss_scale, kResume);
  require_same(" is at update ", theirs.update, first.update, kResume);
  require_same(" has learning rate ", theirs.lr, first.lr, kAlike);
  require_same(" has run micro-batches: ", theirs.pairs, first.pairs, kRun);
}

}  // namespace

size_t first_counted(std::span<const RankReport> reports) {
  const auto found = std::ranges::find(reports, 1, &RankReport::is_counted);
  return found == reports.end() ? 0 : static_cast<size_t>(found - reports.begin());
}

void exchange_reports(Communicator& ranks, const RankReport& own, std::span<RankReport> reports) {
  ranks.all_gather(&own, reports.data(), ranks.size() * static_cast<int64_t>(sizeof own), DType::u8, "reports of a step");
  for (size_t rank = 0; rank < reports.size(); ++rank) require_alike(ranks, reports, rank);
}

}  // namespace st
