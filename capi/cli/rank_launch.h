// One start of all ranks of a launch, until all have ended.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rank_keeper.h"
#include "rank_process.h"

namespace cli {

struct LaunchRequest {
  std::vector<std::string> program;  // and its arguments
  int ranks = 1;
  int port = 0;       // for the ranks' rendezvous; 0: a free one
  int restart = 0;    // number of starts before this one
  double grace = 10;  // seconds from SIGTERM to SIGKILL
};

struct LaunchOutcome {
  // The rank that failed first, or the one whose failure caused the others': "rank 2 was ended by SIGKILL". Empty if all succeeded.
  std::string failure;
  int exit_status = 0;  // kRefused or kFailed, if there is a failure
  int signal = 0;       // that ended the launcher, 0: none
};

class RankLaunch {
 public:
  RankLaunch(const LaunchRequest& request, Console& console, SignalQueue& signals);
  /// Returns when all ranks and the processes they started have ended and their output is written. If one fails, the others get SIGTERM.
  LaunchOutcome run();

 private:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr Time kNever = Time::max();
  struct Rank {
    explicit Rank(std::unique_ptr<RankProcess> started) : process(std::move(started)) {}
    std::unique_ptr<RankProcess> process;  // null once it is gone
    Time kill_at = kNever, give_up_at = kNever;
  };

  bool is_over() const;
  int wait_limit() const;  // for poll
  void wait();
  void take_signals();
  void reap();
  void end(size_t rank, int wait_status);
  void fail(const std::string& reason, int exit_status);
  void terminate();
  void keep_deadlines();

  Console& console_;
  SignalQueue& signals_;
  std::chrono::steady_clock::duration grace_;
  RankKeeper keeper_;
  std::vector<Rank> ranks_;
  LaunchOutcome outcome_;
  Time terminate_at_ = kNever;  // when a failed launch sends SIGTERM to the remaining ranks
  bool has_reason_ = false;     // outcome_ holds a root cause that no other rank's end explains: a signal, or a wrong request
};

}  // namespace cli
