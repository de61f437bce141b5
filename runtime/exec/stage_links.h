// A rank's ends of what connects the stages of its pipeline, and the record of its last step.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "comm/link.h"
#include "exec/stage_runs.h"

namespace st {

class StageLinks {
 public:
  /// `stages`: the ranks of the pipeline in the order of their stages; borrowed.
  explicit StageLinks(Communicator& stages) : stages_(stages) {}

  /// `links`: by index in Program::links; null where this rank has no end. Replaces those of before, whose messages are forgotten.
  void connect(std::vector<std::unique_ptr<Link>> links) {
    links_ = std::move(links);
    ++connected_;
  }
  int64_t connected() const { return connected_; }  // how often
  Communicator& stages() const { return stages_; }
  StageRuns& runs() { return runs_; }
  const StageRuns& runs() const { return runs_; }
  Link& link(int32_t number) const { return *links_[static_cast<size_t>(number)]; }
  /// Ends all of them; the ranks at their other ends fail with the reason.
  void abort(const char* why) noexcept {
    stages_.abort(why);
    for (const auto& link : links_)
      if (link) link->abort(why);
  }
  int64_t sent_bytes() const {
    int64_t bytes = stages_.sent_bytes();
    for (const auto& link : links_) bytes += link ? link->sent_bytes() : 0;
    return bytes;
  }

 private:
  Communicator& stages_;
  std::vector<std::unique_ptr<Link>> links_;
  int64_t connected_ = 0;
  StageRuns runs_;
};

}  // namespace st
