#include "comm/rank_texts.h"

#include <algorithm>
#include <utility>

#include "base/error_of.h"
#include "base/text.h"

namespace st {
namespace {

constexpr int64_t kMostOfText = 16 << 20;  // bytes of a rank's text

/// Code, file, tensor, message.
std::string printed(const Error& error) {
  std::string out = std::to_string(static_cast<int32_t>(error.code()));
  for (const std::string* part : {&error.place.file, &error.place.tensor, &error.message()}) out.append(1, '\0').append(*part);
  return out;
}

Error parsed(std::string_view all) {
  const int64_t said = whole_number(take_text(all), 0);
  const bool is_one = said > static_cast<int64_t>(Code::ok) && said <= static_cast<int64_t>(Code::internal);
  ErrorPlace place;
  place.file = take_text(all);
  place.tensor = take_text(all);
  Error error(is_one ? static_cast<Code>(said) : Code::internal, std::string(all));
  error.place = std::move(place);
  return error;
}

}  // namespace

std::string take_text(std::string_view& all) {
  const size_t end = std::min(all.find('\0'), all.size());
  std::string part(all.substr(0, end));
  all.remove_prefix(std::min(end + 1, all.size()));
  return part;
}

std::vector<std::string> gather_texts(Communicator& ranks, const std::string& own, std::string_view label) {
  const auto size = static_cast<size_t>(ranks.size());
  std::vector<int64_t> lengths(size);
  const int64_t length = std::ssize(own);
  ranks.all_gather(&length, lengths.data(), ranks.size(), DType::i64, label);
  std::vector<std::string> all(size);
  for (int rank = 0; rank < ranks.size(); ++rank) {
    const auto r = static_cast<size_t>(rank);
    require(lengths[r] >= 0 && lengths[r] <= kMostOfText, Code::rank_mismatch, label, ": ", text_of_rank(ranks, rank), " sent a text of ",
            lengths[r], " bytes, at most ", kMostOfText, " are allowed");
    if (rank == ranks.rank()) all[r] = own;
    all[r].resize(static_cast<size_t>(lengths[r]));
    if (lengths[r] > 0) ranks.broadcast(all[r].data(), lengths[r], DType::u8, rank, label);
  }
  return all;
}

void require_all_fine(Communicator& ranks, const std::exception_ptr& own, std::string_view label) {
  std::vector<std::string> all;
  try {
    all = gather_texts(ranks, own ? printed(error_of(own)) : std::string(), label);
  } catch (...) {
    if (own) std::rethrow_exception(own);  // it tells more than what has become of the group
    throw;
  }
  for (int rank = 0; rank < ranks.size(); ++rank) {
    const std::string& said = all[static_cast<size_t>(rank)];
    if (said.empty()) continue;
    const Error first = rank == ranks.rank() ? error_of(own) : parsed(said);
    Error error(first.code(), rank == ranks.rank() ? first.message() : text(text_of_rank(ranks, rank), ": ", first.message()));
    error.place = first.place;
    error.place.rank = rank;
    error.is_on_all_ranks = true;
    error.place.host = ranks.host_of(rank);
    throw error;
  }
}

void meeting_once(Communicator& ranks, std::string_view label, const std::function<void(const MeetOthers& meet)>& call) {
  bool has_met = false;
  const MeetOthers meet = [&](const std::exception_ptr& own) {
    has_met = true;
    require_all_fine(ranks, own, label);
  };
  try {
    call(meet);
  } catch (...) {
    if (!has_met) meet(std::current_exception());  // the others wait to hear how it went
    throw;
  }
}

}  // namespace st
