#include "comm/flight_recorder.h"

#include <algorithm>
#include <vector>

#include "base/json_line.h"
#include "base/os/machine.h"
#include "base/text.h"
#include "base/utf8.h"
#include "comm/flight_board.h"
#include "comm/text_of_seconds.h"

namespace st {
namespace {

int64_t microseconds(double seconds) { return static_cast<int64_t>(seconds * 1e6); }

}  // namespace

void FlightRecorder::begin(uint64_t sequence, const CollectiveCall& call) {
  const std::lock_guard lock(mutex_);
  FlightRecord& record = records_[count_++ % kKept];
  record = {};
  record.sequence = sequence;
  record.call = call;
  record.call.label = {};
  const std::string_view label = call.label.substr(0, record.label.size() - 1);
  std::copy_n(label.data(), utf8_valid_until(label), record.label.data());  // truncates between characters
  record.began = os::seconds();
  if (board_ != nullptr) board_->show(count_, record);
}

void FlightRecorder::end(int64_t bytes) {
  const std::lock_guard lock(mutex_);
  FlightRecord& record = records_[(count_ - 1) % kKept];
  record.bytes = bytes;
  record.ended = os::seconds();
  if (board_ != nullptr) board_->show(count_, record);
  seconds_ += record.ended - record.began;
}

double FlightRecorder::seconds() const {
  const std::lock_guard lock(mutex_);
  return seconds_;
}

template <class Each>
void FlightRecorder::each_of_last(int most, const Each& each) const {
  const std::lock_guard lock(mutex_);
  const uint64_t kept = std::min<uint64_t>(count_, static_cast<uint64_t>(std::clamp(most, 0, kKept)));
  for (uint64_t i = count_ - kept; i < count_; ++i) each(records_[i % kKept]);
}

std::string FlightRecorder::text(int most) const {
  std::string out;
  each_of_last(most, [&](const FlightRecord& record) {
    if (!out.empty()) out += '\n';
    out += st::text('#', record.sequence, ' ', text_of(record.call));
    if (record.label[0] != 0) out += st::text(' ', record.label.data());
    out += record.ended == 0 ? st::text(": under way for ", text_of_seconds(os::seconds() - record.began))
                             : st::text(": ", record.bytes, " bytes in ", text_of_seconds(record.ended - record.began));
  });
  return out;
}

std::string FlightRecorder::json() const {
  std::vector<std::string> records;
  each_of_last(kKept, [&](const FlightRecord& record) {
    JsonLine line;
    line.add("sequence", record.sequence).add("collective", name_of(record.call.what));
    if (is_reduction(record.call.what)) line.add("op", name_of(record.call.op));
    line.add("dtype", name_of(record.call.dtype)).add("elements", record.call.elements);
    if (record.call.root >= 0) line.add("root", record.call.root);
    line.add("label", record.label.data()).add("bytes", record.bytes).add("began_us", microseconds(record.began));
    records.push_back(line.add("ended_us", microseconds(record.ended)).text());
  });
  return json_list(records);
}

}  // namespace st
