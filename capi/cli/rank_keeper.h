// What ends the ranks when their launcher is killed and can do nothing any more.
#pragma once

#include <sys/types.h>

namespace cli {

/// A process that waits for this one to end, by whatever means, and then kills the process groups that are watched: also what a rank's
/// shell has started, which a parent-death signal does not reach.
class RankKeeper {
 public:
  RankKeeper();
  ~RankKeeper();  // kills what is watched still
  RankKeeper(const RankKeeper&) = delete;
  RankKeeper& operator=(const RankKeeper&) = delete;

  void watch(pid_t group) { tell(group); }
  void forget(pid_t group) { tell(-group); }

 private:
  void tell(pid_t message);

  pid_t process_ = -1;
  int pipe_ = -1;
};

}  // namespace cli
