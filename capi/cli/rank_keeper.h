// Ends the ranks if their launcher is killed.
#pragma once

#include <sys/types.h>

namespace cli {

/// A process that waits for this one to end, in whatever way, and then kills the watched process groups, including what a rank's shell has
/// started. A parent-death signal does not reach those.
class RankKeeper {
 public:
  RankKeeper();
  ~RankKeeper();  // kills the groups still watched
  RankKeeper(const RankKeeper&) = delete;
  RankKeeper& operator=(const RankKeeper&) = delete;

  void watch(pid_t group) { send(group); }
  void forget(pid_t group) { send(-group); }

 private:
  void send(pid_t message);

  pid_t process_ = -1;
  int pipe_ = -1;
};

}  // namespace cli
