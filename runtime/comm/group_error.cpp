#include "comm/group_error.h"

#include "base/text.h"

namespace st {

std::string CallUnderWay::text() const {
  std::string out = text_of(call) + " (";
  if (!call.label.empty()) out += st::text(call.label, ", ");
  return out + st::text('#', sequence, ')');
}

std::string text_of_rank(const Transport& transport, int rank) { return text("rank ", rank, " (", transport.host_of(rank), ')'); }

Error group_error(const RankFailure& failure, const CallUnderWay& here, const Transport& transport, const FlightRecorder& recorder) {
  constexpr int kRecords = 3;
  Error error(failure.code, text(here.text(), ": ", text_of_rank(transport, failure.rank), ": ",
                                 failure.reason.empty() ? "it has ended the group" : failure.reason, "; rank ", transport.rank(),
                                 "'s last collectives:\n", recorder.text(kRecords)));
  error.place.rank = failure.rank;
  error.place.host = transport.host_of(failure.rank);
  error.place.collective = name_of(here.call.what);
  error.place.tensor = here.call.label;
  return error;
}

}  // namespace st
