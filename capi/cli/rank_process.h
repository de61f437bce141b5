// One rank of a launch: a process, its process group and its output.
#pragma once

#include <sys/types.h>

#include <array>
#include <string>
#include <vector>

#include "console.h"
#include "signal_queue.h"

namespace cli {

/// The variables added to a rank's environment.
struct RankVariables {
  int rank = 0, size = 1;
  int port = 0;     // MASTER_PORT
  int restart = 0;  // SCALETRAIN_RESTART
  int launch = 0;   // SCALETRAIN_LAUNCH: the launcher's process id, which distinguishes its job from another on the same port
};

class RankProcess {
 public:
  /// Starts program[0], found through PATH, in a process group of its own. It is killed if the launcher ends. Rank 0 inherits the
  /// launcher's stdin unless that is a terminal. Throws Failure if it cannot be started: kRefused if it is not a program, else kFailed.
  RankProcess(const std::vector<std::string>& program, const RankVariables& variables, const SignalQueue& signals);
  ~RankProcess();
  RankProcess(const RankProcess&) = delete;
  RankProcess& operator=(const RankProcess&) = delete;

  pid_t process() const { return process_; }
  /// Descriptor to poll and read; -1 after its end.
  int output(int stream) const { return outputs_[stream]; }
  /// Reads once what is available.
  void read_some(int stream, Console& console);
  /// Stops waiting for output of processes that cannot be found.
  void close_outputs(Console& console);

  /// Signals the whole group, as a terminal would.
  void signal(int number) const;
  /// Signals only the processes of the group that handle the signal; ends none.
  void ask(int number) const;

  void set_ended() { has_ended_ = true; }
  bool has_ended() const { return has_ended_; }
  /// The rank has ended, its output is closed, and its group is empty.
  bool is_gone() const;

 private:
  pid_t process_ = -1;
  std::array<int, 2> outputs_ = {-1, -1};
  std::array<PrefixedLines, 2> lines_;
  bool has_ended_ = false;
};

}  // namespace cli
