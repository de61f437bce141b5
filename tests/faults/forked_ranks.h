// Ranks that are real processes, to be stopped and killed.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/local/process_group.h"

namespace st {

/// Forks a child for each rank, which says lines to its parent and ends when its body does. No threads may run here as it forks.
class ForkedRanks {
 public:
  using Say = std::function<void(const std::string& line)>;
  ForkedRanks(int size, const std::function<void(int rank, const Say& say)>& body);
  ~ForkedRanks();  // SIGKILL to those that are left
  ForkedRanks(const ForkedRanks&) = delete;
  ForkedRanks& operator=(const ForkedRanks&) = delete;

  int size() const { return static_cast<int>(children_.size()); }
  int process_of(int rank) const { return children_[static_cast<size_t>(rank)].process; }
  void signal(int rank, int number) const;
  /// What a rank says next; "ended" when it says no more, "silent" when it has said nothing for 20 s.
  std::string next_line(int rank);
  /// Waits for this line from all; the first other one.
  std::string all_say(const std::string& line);

 private:
  struct Child {
    int process = -1;
    int lines = -1;  // the end of a pipe to read from
    std::string unread;
  };
  std::vector<Child> children_;
};

/// Joins the group of a job; its errors are those of join_process_group().
std::unique_ptr<Communicator> join(const std::string& job, int rank, int size, CommunicatorOptions options = {}, double patience = 20);

void sleep_for(double seconds);

/// Calls and says what is thrown, for outcome_from() to read: code, rank, collective, microseconds, message; nothing: "fine".
void say_outcome(const ForkedRanks::Say& say, const std::function<void()>& call);

struct Outcome {
  Code code = Code::ok;
  std::string collective, message;
  int rank = -1;
  double when = 0;
};
Outcome outcome_from(const std::string& line);

}  // namespace st
