#include "call_tally.h"

#include <cstdio>
#include <cstring>
#include <fstream>

#include "seeded_trials.h"

namespace st::fuzz {
namespace {

CallTally own{};
CallTally* shared = &own;

}  // namespace

CallTally& tally() { return *shared; }

void share_tally() { shared = &shared_zeros<CallTally>(); }

void CallTally::count(const char* function, bool worked) {
  int at = 0;
  while (at < used_ && std::strcmp(rows_[static_cast<size_t>(at)].name.data(), function) != 0) ++at;
  Row& row = rows_.at(static_cast<size_t>(at));
  if (at == used_) {
    std::snprintf(row.name.data(), row.name.size(), "%s", function);
    ++used_;
  }
  ++row.calls;
  row.worked += worked ? 1 : 0;
}

uint64_t CallTally::calls() const {
  uint64_t sum = 0;
  for (int i = 0; i < used_; ++i) sum += rows_[static_cast<size_t>(i)].calls;
  return sum;
}

const CallTally::Row* CallTally::find(const std::string& function) const {
  for (int i = 0; i < used_; ++i)
    if (function == rows_[static_cast<size_t>(i)].name.data()) return &rows_[static_cast<size_t>(i)];
  return nullptr;
}

/// Works for seconds, so it is only called with what it refuses.
constexpr const char* kRefusedOnly = "st_machine_calibrate";

std::string CallTally::missed(const char* symbols_file) const {
  std::string all;
  std::ifstream symbols(symbols_file);
  if (!symbols) return std::string("no file ") + symbols_file;
  for (std::string symbol; std::getline(symbols, symbol);) {
    const Row* row = find(symbol);
    if (row == nullptr) all += " " + symbol + " (never called)";
    if (row != nullptr && row->worked == 0 && symbol != kRefusedOnly) all += " " + symbol + " (never ST_OK)";
  }
  return all;
}

}  // namespace st::fuzz
