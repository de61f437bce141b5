#include "rank_launch.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <random>
#include <utility>

#include "failure.h"

namespace cli {
namespace {

using Clock = std::chrono::steady_clock;

/// A free port of 127.0.0.1, below those that Linux gives to connections: one of them could take it before rank 0 listens.
int free_port() {
  constexpr int kFirst = 20'000, kPorts = 12'000, kTrials = 1'000;
  std::minstd_rand chance(std::random_device{}());
  int reason = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    const int port = kFirst + static_cast<int>(chance() % kPorts), tried = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<uint16_t>(port));
    const bool is_free = bind(tried, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    reason = errno;
    close(tried);
    if (is_free) return port;
  }
  throw Failure(kFailed, std::string("launch: no free port of 127.0.0.1: ") + std::strerror(reason));
}

std::string end_text(int wait_status) {
  if (WIFEXITED(wait_status)) return "ended with status " + std::to_string(WEXITSTATUS(wait_status));
  return "was ended by " + signal_name(WTERMSIG(wait_status)) + (WCOREDUMP(wait_status) ? ", core dumped" : "");
}

/// How long to wait for output after all processes that could write it were killed.
constexpr std::chrono::seconds kLastOutput(1);
// A rank that lost another rank may exit first. The other ranks get this long to exit with their own reason before SIGTERM.
constexpr std::chrono::milliseconds kCause(250);
constexpr std::chrono::milliseconds kLook(20);  // polls a process group, since no signal reports its end

}  // namespace

RankLaunch::RankLaunch(const LaunchRequest& request, Console& console, SignalQueue& signals)
    : console_(console),
      signals_(signals),
      grace_(std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(request.grace))) {
  // Processes that outlive their rank then become our children: we see their end and reap them.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const int port = request.port > 0 ? request.port : free_port();
  for (int rank = 0; rank < request.ranks; ++rank) {
    const RankVariables variables = {.rank = rank, .size = request.ranks, .port = port, .restart = request.restart, .launch = getpid()};
    ranks_.emplace_back(std::make_unique<RankProcess>(request.program, variables, signals));
    keeper_.watch(ranks_.back().process->process());
  }
}

LaunchOutcome RankLaunch::run() {
  while (!is_over()) {
    wait();
    take_signals();
    keep_deadlines();
  }
  return outcome_;
}

bool RankLaunch::is_over() const {
  return console_.is_empty() && std::ranges::none_of(ranks_, [](const Rank& rank) { return rank.process != nullptr; });
}

int RankLaunch::wait_limit() const {
  Time next = terminate_at_;
  for (const Rank& rank : ranks_) {
    if (!rank.process) continue;
    next = std::min({next, rank.kill_at, rank.give_up_at});
    if (rank.process->has_ended()) next = std::min(next, Clock::now() + kLook);
  }
  if (next == kNever) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now()).count();
  return static_cast<int>(std::clamp<decltype(left)>(left, 0, 3'600'000));
}

/// Waits for signals, for output of ranks if the console has room, and for the console.
void RankLaunch::wait() {
  std::vector<pollfd> polled = {{signals_.descriptor(), POLLIN, 0}, console_.wish(kStdout), console_.wish(kStderr)};
  std::vector<std::pair<RankProcess*, int>> sources;  // at polled[3] and above
  for (const Rank& rank : ranks_)
    for (const int stream : {kStdout, kStderr}) {
      if (!rank.process || rank.process->output(stream) < 0 || !console_.has_room(stream)) continue;
      polled.push_back({rank.process->output(stream), POLLIN, 0});
      sources.emplace_back(rank.process.get(), stream);
    }
  if (poll(polled.data(), polled.size(), wait_limit()) <= 0) return;
  for (const int stream : {kStdout, kStderr})
    if (polled[1 + stream].revents != 0) console_.write_some(stream);
  for (size_t i = 0; i < sources.size(); ++i) {
    const auto& [process, stream] = sources[i];
    if (polled[3 + i].revents != 0 && console_.has_room(stream)) process->read_some(stream, console_);
  }
  if (console_.problem().empty()) return;
  fail(console_.problem(), kFailed);
  terminate();
  has_reason_ = true;
}

void RankLaunch::take_signals() {
  while (const int number = signals_.next()) {
    if (number == SIGCHLD) {
      reap();
      continue;
    }
    if (number == SIGPIPE) continue;
    for (const Rank& rank : ranks_)
      if (rank.process) number == SIGUSR1 ? rank.process->ask(number) : rank.process->signal(number);
    if (number == SIGUSR1) continue;
    if (outcome_.signal == 0)
      outcome_.signal = number;
    else  // a second signal: start their grace period now
      for (Rank& rank : ranks_) rank.kill_at = std::min(rank.kill_at, Clock::now() + grace_);
    // Only the console is left, and its reader does not read.
    if (std::ranges::none_of(ranks_, [](const Rank& rank) { return rank.process != nullptr; })) console_.drop();
  }
}

void RankLaunch::reap() {
  int wait_status = 0;
  for (pid_t process = 0; (process = waitpid(-1, &wait_status, WNOHANG)) > 0;)
    for (size_t i = 0; i < ranks_.size(); ++i)
      if (ranks_[i].process && ranks_[i].process->process() == process) end(i, wait_status);
}

void RankLaunch::end(size_t i, int wait_status) {
  Rank& rank = ranks_[i];
  rank.process->set_ended();
  rank.kill_at = std::min(rank.kill_at, Clock::now() + grace_);  // for processes that outlive it
  const int status = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
  const bool as_asked = outcome_.signal != 0 && status == 128 + outcome_.signal;
  if (status == 0 || as_asked) return;
  const std::string reason = "rank " + std::to_string(i) + " " + end_text(wait_status);
  const int exit_status = status == kRefused ? kRefused : kFailed;
  fail(reason, exit_status);
  // A rank that ends because of another's failure may be seen first; the failure that no other explains is the reason.
  const bool is_killed_by_us = rank.give_up_at != kNever;
  const bool is_own = status == kRefused || (WIFSIGNALED(wait_status) && !is_killed_by_us && WTERMSIG(wait_status) != SIGTERM &&
                                             WTERMSIG(wait_status) != SIGABRT);
  if (!is_own || has_reason_) return;
  terminate_at_ = std::min(terminate_at_, Clock::now());
  has_reason_ = true;
  outcome_.failure = reason;
  outcome_.exit_status = exit_status;
}

void RankLaunch::fail(const std::string& reason, int exit_status) {
  if (!outcome_.failure.empty()) return;
  outcome_.failure = reason;
  outcome_.exit_status = exit_status;
  terminate_at_ = Clock::now() + kCause;
}

void RankLaunch::terminate() {
  terminate_at_ = kNever;
  for (Rank& rank : ranks_) {
    if (!rank.process) continue;
    // A second signal would kill a rank that is shutting down in order.
    if (outcome_.signal == 0) rank.process->signal(SIGTERM);
    rank.kill_at = std::min(rank.kill_at, Clock::now() + grace_);
  }
}

void RankLaunch::keep_deadlines() {
  const Time now = Clock::now();
  if (now >= terminate_at_) terminate();
  for (Rank& rank : ranks_) {
    if (!rank.process) continue;
    if (now >= rank.kill_at) {
      rank.process->signal(SIGKILL);
      rank.kill_at = kNever;
      rank.give_up_at = now + kLastOutput;
    }
    // While the console's reader pauses, the ranks' output cannot be read.
    if (now >= rank.give_up_at && !(console_.has_room(kStdout) && console_.has_room(kStderr))) rank.give_up_at = now + kLastOutput;
    const bool is_given_up = rank.process->has_ended() && now >= rank.give_up_at;
    if (is_given_up) rank.process->close_outputs(console_);
    if (!is_given_up && !rank.process->is_gone()) continue;
    keeper_.forget(rank.process->process());
    rank.process.reset();
  }
}

}  // namespace cli
