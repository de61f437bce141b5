#include "forked_ranks.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <utility>

#include "base/os/machine.h"
#include "base/text.h"
#include "comm/direct_exchange.h"
#include "shared_job.h"

namespace st {
ForkedRanks::ForkedRanks(int size, const std::function<void(int rank, const Say& say)>& body) {
  for (int rank = 0; rank < size; ++rank) {
    std::array<int, 2> ends{};
    if (pipe(ends.data()) != 0) throw std::runtime_error("no pipe");
    const int process = fork();
    if (process < 0) throw std::runtime_error("no process");
    if (process == 0) {
      const auto say = [&](std::string line) {
        std::replace(line.begin(), line.end(), '\n', '|');
        line += '\n';
        if (write(ends[1], line.data(), line.size()) != std::ssize(line)) _exit(1);
      };
      try {
        body(rank, say);
      } catch (const std::exception& error) {
        say(text("threw ", error.what()));
      }
      _exit(0);
    }
    close(ends[1]);
    children_.push_back({process, ends[0], {}});
  }
}

ForkedRanks::~ForkedRanks() {
  for (const Child& child : children_) kill(child.process, SIGKILL);
  for (const Child& child : children_) {
    waitpid(child.process, nullptr, 0);
    close(child.lines);
  }
}

void ForkedRanks::signal(int rank, int number) const { kill(process_of(rank), number); }

std::string ForkedRanks::next_line(int rank) {
  Child& child = children_[static_cast<size_t>(rank)];
  for (;;) {
    if (const size_t end = child.unread.find('\n'); end != std::string::npos) {
      std::string line = child.unread.substr(0, end);
      child.unread.erase(0, end + 1);
      return line;
    }
    pollfd wanted{child.lines, POLLIN, 0};
    if (poll(&wanted, 1, 20'000) != 1) return "silent";
    std::array<char, 512> piece;
    const ssize_t n = read(child.lines, piece.data(), piece.size());
    if (n <= 0) return "ended";
    child.unread.append(piece.data(), static_cast<size_t>(n));
  }
}

std::string ForkedRanks::all_say(const std::string& line) {
  for (int rank = 0; rank < size(); ++rank)
    if (const std::string said = next_line(rank); said != line) return text("rank ", rank, ": ", said);
  return line;
}

std::unique_ptr<Communicator> join(const std::string& job, int rank, int size, CommunicatorOptions options, double patience) {
  return std::make_unique<DirectExchange>(join_process_group(options_of(job, rank, size, patience)), std::move(options));
}

void sleep_for(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

void say_outcome(const ForkedRanks::Say& say, const std::function<void()>& call) {
  try {
    call();
    say("fine");
  } catch (const Error& error) {
    const double now = os::seconds();
    say(text(static_cast<int>(error.code()), ' ', error.place.rank, ' ', error.place.collective.empty() ? "-" : error.place.collective, ' ',
             static_cast<int64_t>(now * 1e6), ' ', error.message()));
  }
}

Outcome outcome_from(const std::string& line) {
  Outcome outcome;
  std::istringstream words(line);
  int64_t microseconds = 0;
  int code = -1;
  words >> code >> outcome.rank >> outcome.collective >> microseconds;
  outcome.code = static_cast<Code>(code);
  outcome.when = static_cast<double>(microseconds) * 1e-6;
  std::getline(words, outcome.message);
  return outcome;
}

}  // namespace st
