// One rank of a launch: a process, its process group and its output.
#pragma once

#include <sys/types.h>

#include <array>
#include <string>
#include <vector>

#include "console.h"
#include "signal_queue.h"

namespace cli {

/// What a rank finds in its environment, besides the launcher's own.
struct RankVariables {
  int rank = 0, size = 1;
  int port = 0;     // of MASTER_PORT
  int restart = 0;  // of SCALETRAIN_RESTART
  int launch = 0;   // of SCALETRAIN_LAUNCH: the launcher's process, which tells its job from another's of the same port
};

class RankProcess {
 public:
  /// Starts program[0], looked for in PATH, in a process group of its own; it is killed when its launcher ends. Rank 0 has the launcher's
  /// stdin where that is no terminal. Throws Failure where it cannot be started: kRefused where it is no program, else kFailed.
  RankProcess(const std::vector<std::string>& program, const RankVariables& variables, const SignalQueue& signals);
  ~RankProcess();
  RankProcess(const RankProcess&) = delete;
  RankProcess& operator=(const RankProcess&) = delete;

  pid_t process() const { return process_; }
  /// To be polled and read; -1: at its end.
  int output(int stream) const { return outputs_[stream]; }
  /// Reads what is there, once.
  void read_some(int stream, Console& console);
  /// What still comes from a process that nobody can find is not waited for.
  void close_outputs(Console& console);

  /// To the whole group, as a terminal would.
  void signal(int number) const;
  /// To those of the group that know what it means; it ends nobody.
  void ask(int number) const;

  void set_ended() { has_ended_ = true; }
  bool has_ended() const { return has_ended_; }
  /// It has ended, and nobody has its output, nor is anybody left in its group.
  bool is_gone() const;

 private:
  pid_t process_ = -1;
  std::array<int, 2> outputs_ = {-1, -1};
  std::array<PrefixedLines, 2> lines_;
  bool has_ended_ = false;
};

}  // namespace cli
