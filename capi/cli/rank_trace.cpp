#include "rank_trace.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>

namespace cli {
namespace {

int64_t microseconds_of(double seconds) { return std::llround(seconds * 1e6); }

constexpr int kSteps = 0, kExchange = 1;  // a rank's rows

/// A span of time of a rank, a line of the file.
std::string span_line(int rank, int row, const std::string& name, int64_t began_us, int64_t ended_us, const Json& arguments) {
  const Json span = {{"name", name},     {"ph", "X"}, {"pid", rank}, {"tid", row}, {"ts", began_us}, {"dur", ended_us - began_us},
                     {"args", arguments}};
  return span.dump() + ",\n";
}

}  // namespace

RankTrace::RankTrace(const std::string& path, const RunRanks& ranks) : ranks_(ranks), path_(path) {
  if (path.empty()) return;
  const int anew = ranks.is_first() ? O_CREAT | O_TRUNC : 0;
  if (!ranks.is_first()) ranks.largest({0, 0});  // rank 0 has made it
  file_ = open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | anew, 0666);
  if (file_ < 0) refuse("--trace: cannot open ", path, ": ", std::strerror(errno));
  if (ranks.is_first()) append("[\n");
  const std::string name = "rank " + std::to_string(ranks.rank());
  std::string names = Json{{"name", "process_name"}, {"ph", "M"}, {"pid", ranks.rank()}, {"args", {{"name", name}}}}.dump() + ",\n";
  const auto name_row = [&](int row, const char* what) {
    names += Json{{"name", "thread_name"}, {"ph", "M"}, {"pid", ranks.rank()}, {"tid", row}, {"args", {{"name", what}}}}.dump() + ",\n";
  };
  if (ranks.communicator() != nullptr) {
    name_row(kSteps, "steps");
    name_row(kExchange, "exchange");
  }
  append(names);
  if (ranks.is_first()) ranks.largest({0, 0});
}

RankTrace::~RankTrace() {
  if (file_ >= 0) close(file_);
}

void RankTrace::add_step(int64_t step, double began, double ended) {
  if (path_.empty()) return;
  std::string events =
      span_line(ranks_.rank(), kSteps, "step " + std::to_string(step), microseconds_of(began), microseconds_of(ended), Json::object());
  if (ranks_.communicator() != nullptr) {
    const Json record = Json::parse(text(st_communicator_flight_record, ranks_.communicator()));
    for (const Json& call : record) {
      const auto sequence = call["sequence"].get<int64_t>(), end = call["ended_us"].get<int64_t>();
      if (sequence <= shown_ || end == 0) continue;
      shown_ = sequence;
      const std::string name = call["collective"].get<std::string>() + " " + call["label"].get<std::string>();
      events +=
          span_line(ranks_.rank(), kExchange, name, call["began_us"].get<int64_t>(), end,
                    {{"sequence", sequence}, {"elements", call["elements"]}, {"dtype", call["dtype"]}, {"bytes_sent", call["bytes"]}});
    }
  }
  append(events);
}

void RankTrace::finish() {
  if (path_.empty()) return;
  ranks_.largest({0, 0});  // all have written what they have
  if (ranks_.is_first()) append("{\"name\":\"end\",\"ph\":\"M\",\"pid\":0}\n]\n");
}

/// In one write, so that no other rank's lines come in between.
void RankTrace::append(const std::string& events) {
  if (::write(file_, events.data(), events.size()) != std::ssize(events))
    throw Failure(kFailed, "--trace: cannot write to " + path_ + ": " + std::strerror(errno));
}

}  // namespace cli
