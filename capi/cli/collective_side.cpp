#include "collective_side.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "seconds_now.h"

namespace cli {
namespace {

constexpr double kAnswerSeconds = 120;  // 64 MiB take a rank a few seconds at most, on a busy machine
constexpr double kEndSeconds = 5;

int make_pipe(const std::string& path) {
  // O_RDWR: opening does not wait for the other end, and there is no end of file before the other end opens.
  const int pipe = mkfifo(path.c_str(), 0600) == 0 ? open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK) : -1;
  if (pipe < 0) throw std::runtime_error("cannot make the pipe " + path);
  return pipe;
}

}  // namespace

CollectiveSide::CollectiveSide(int ranks, const std::function<std::vector<Program>(const std::string& folder)>& programs) : ranks_(ranks) {
  try {
    answers_ = make_pipe(answer_pipe(folder_.path));
    for (int rank = 0; rank < ranks; ++rank) orders_.push_back(make_pipe(order_pipe(folder_.path, rank)));
    for (const Program& program : programs(folder_.path)) start(program);
  } catch (...) {
    end();
    throw;
  }
}

CollectiveSide::~CollectiveSide() { end(); }

void CollectiveSide::start(const Program& program) {
  std::vector<char*> arguments;
  for (const std::string& word : program) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const std::string log = folder_.path / "log";
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("cannot fork");
  if (child > 0) return children_.push_back(child);
  const int none = open("/dev/null", O_RDONLY), words = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  dup2(none, STDIN_FILENO);
  dup2(words, STDOUT_FILENO);
  dup2(words, STDERR_FILENO);
  for (const char* allowed : {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"}) setenv(allowed, "1", 1);
  execvp(arguments[0], arguments.data());
  _exit(127);
}

/// Ranks end when their orders' pipes close. If one has failed, others may wait for it or for a pipe: they get SIGTERM.
void CollectiveSide::end() {
  for (const int pipe : orders_) close(pipe);
  if (answers_ >= 0) close(answers_);
  for (const pid_t child : children_)
    if (has_failed_) kill(child, SIGTERM);
  const double give_up = seconds_now() + kEndSeconds;
  for (const pid_t child : children_) {
    while (waitpid(child, nullptr, WNOHANG) == 0) {
      if (seconds_now() > give_up) kill(child, SIGKILL);
      usleep(1000);
    }
  }
}

std::optional<CallTimes> CollectiveSide::measure(Exchange exchange, int64_t elements, int64_t calls, uint64_t seed) {
  std::ostringstream order;
  order << kExchanges[static_cast<size_t>(exchange)] << ' ' << elements << ' ' << calls << ' ' << seed << '\n';
  for (const int pipe : orders_)
    if (::write(pipe, order.str().data(), order.str().size()) < 0) throw std::runtime_error("cannot send it an order");
  CallTimes slowest;
  bool has_it = true;
  for (int answers = 0; answers < ranks_; ++answers) {
    const std::string answer = next_answer();
    std::istringstream words(answer);
    std::string rank, what;
    CallTimes times;
    words >> rank >> what >> times.median >> times.p10 >> times.p90;
    if (what == "error")
      throw std::runtime_error("rank " + answer.substr(0, answer.find(' ')) + ": " + answer.substr(answer.find("error") + 6));
    if (what == "none") has_it = false;
    if (times.median > slowest.median) slowest = times;
  }
  return has_it ? std::optional(slowest) : std::nullopt;
}

std::string CollectiveSide::next_answer() {
  has_failed_ = true;  // cleared when it answers
  const double deadline = seconds_now() + kAnswerSeconds;
  while (true) {
    if (const size_t end = read_.find('\n'); end != std::string::npos) {
      std::string line = read_.substr(0, end);
      read_.erase(0, end + 1);
      has_failed_ = line.find(" error ") != std::string::npos;
      return line;
    }
    pollfd wish{answers_, POLLIN, 0};
    if (poll(&wish, 1, 100) > 0) {
      char bytes[4096];
      if (const ssize_t count = read(answers_, bytes, sizeof bytes); count > 0) read_.append(bytes, static_cast<size_t>(count));
      continue;
    }
    look_for_ended();
    if (seconds_now() > deadline) throw std::runtime_error("no answer for " + std::to_string(int(kAnswerSeconds)) + " s" + last_words());
  }
}

void CollectiveSide::look_for_ended() const {
  for (const pid_t child : children_) {
    siginfo_t ended{};
    // WNOWAIT: the child stays to be reaped later.
    if (waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOHANG | WNOWAIT) != 0 || ended.si_pid == 0) continue;
    throw std::runtime_error((ended.si_code == CLD_EXITED ? "it ended with status " : "it ended by signal ") +
                             std::to_string(ended.si_status) + " without an answer" + last_words());
  }
}

/// The last lines that its programs have written.
std::string CollectiveSide::last_words() const {
  std::ifstream log(folder_.path / "log");
  std::string last;
  for (std::string line; std::getline(log, line);)
    if (line.find_first_not_of(" -\t") != std::string::npos) last = line;
  return last.empty() ? "" : ": " + last;
}

}  // namespace cli
