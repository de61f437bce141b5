#include "comm/group_error.h"

#include <utility>
#include <vector>

#include "base/text.h"
#include "comm/communicator.h"
#include "comm/flight_board.h"

namespace st {

std::string CallUnderWay::text() const {
  std::string out = text_of(call) + " (";
  if (!call.label.empty()) out += st::text(call.label, ", ");
  return out + st::text('#', sequence, ')');
}

namespace {

/// `rank` of this group; -1: of another group. The whole group's number is named first.
std::string text_of(int whole_rank, int rank, const std::string& host) {
  if (whole_rank == rank) return text("rank ", rank, " (", host, ')');
  const std::string here = rank < 0 ? "not in this group" : text("rank ", rank, " of this group");
  return text("rank ", whole_rank, " (", here, "; ", host, ')');
}

}  // namespace

std::string text_of_whole_rank(const Transport& transport, int rank) {
  int here = transport.size() - 1;
  while (here >= 0 && transport.whole_rank(here) != rank) --here;
  return text_of(rank, here, transport.whole().host_of(rank));
}

std::string text_of_rank(const Communicator& ranks, int rank) { return text_of(ranks.whole_rank(rank), rank, ranks.host_of(rank)); }

void refuse_rank(const Communicator& ranks, int rank, std::string_view tensor, std::string message) {
  Error error(Code::rank_mismatch, std::move(message));
  error.place.rank = ranks.whole_rank(rank);
  error.place.host = ranks.host_of(rank);
  error.place.tensor = tensor;
  throw error;
}

namespace {

/// All ranks' collectives if they share memory, otherwise this rank's. A blank line separates them from the error.
std::string last_collectives(const Transport& transport, const FlightRecorder& recorder) {
  std::vector<const FlightBoard*> boards;
  for (int rank = 0; rank < transport.size(); ++rank) boards.push_back(transport.board(rank));
  if (boards[static_cast<size_t>(transport.rank())] != nullptr) return text("\n\nthe ranks' last collectives:\n", merged_text(boards));
  return text("\n\nrank ", transport.whole_rank(transport.rank()), "'s last collectives:\n", recorder.text(FlightBoard::kShown));
}

}  // namespace

Error group_error(const RankFailure& failure, const CallUnderWay& here, const Transport& transport, const FlightRecorder& recorder) {
  Error error(failure.code,
              text(here.text(), ": ", text_of_whole_rank(transport, failure.rank), ": ",
                   failure.reason.empty() ? "it has ended the group" : failure.reason, last_collectives(transport, recorder)));
  error.place.rank = failure.rank;
  error.place.host = transport.whole().host_of(failure.rank);
  error.place.collective = name_of(here.call.what);
  error.place.tensor = here.call.label;
  return error;
}

}  // namespace st
