// Ranks that are processes, which tests stop and kill.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/local/process_group.h"

namespace st {

/// Forks a child for each rank, which sends lines to its parent and ends when its body does. No other threads may run during the fork.
class ForkedRanks {
 public:
  using Say = std::function<void(const std::string& line)>;
  ForkedRanks(int size, const std::function<void(int rank, const Say& say)>& body);
  ~ForkedRanks();  // sends SIGKILL to those that still run
  ForkedRanks(const ForkedRanks&) = delete;
  ForkedRanks& operator=(const ForkedRanks&) = delete;

  int size() const { return static_cast<int>(children_.size()); }
  int process_of(int rank) const { return children_[static_cast<size_t>(rank)].process; }
  void signal(int rank, int number) const;
  /// The next line from a rank; "ended" if it has ended, "silent" if it sends nothing for 20 s.
  std::string next_line(int rank);
  /// Waits for this line from all ranks; returns the first different line.
  std::string all_say(const std::string& line);

 private:
  struct Child {
    int process = -1;
    int lines = -1;  // the reading end of a pipe
    std::string unread;
  };
  std::vector<Child> children_;
};

/// Joins the group of a job; its errors are those of join_process_group().
std::unique_ptr<Communicator> join(const std::string& job, int rank, int size, CommunicatorOptions options = {}, double patience = 20);

void sleep_for(double seconds);

/// Calls `call` and sends its exception for outcome_from(): code, rank, collective, microseconds, message; "fine" if there is none.
void say_outcome(const ForkedRanks::Say& say, const std::function<void()>& call);

struct Outcome {
  Code code = Code::ok;
  std::string collective, message;
  int rank = -1;
  double when = 0;
};
Outcome outcome_from(const std::string& line);

}  // namespace st
