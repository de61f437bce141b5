#include "rank_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "failure.h"
#include "handled_signal.h"

namespace cli {
namespace {

struct Pipe {
  Pipe() {
    if (pipe2(ends, O_CLOEXEC) != 0) throw Failure(kFailed, std::string("launch: ") + std::strerror(errno));
  }
  ~Pipe() {
    for (const int end : ends)
      if (end >= 0) close(end);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  int give(int which) { return std::exchange(ends[which], -1); }

  int ends[2] = {-1, -1};  // read, write
};

void set_variables(const RankVariables& variables) {
  const auto set = [](const char* name, int value) { setenv(name, std::to_string(value).c_str(), 1); };
  set("RANK", variables.rank);
  set("WORLD_SIZE", variables.size);
  set("LOCAL_RANK", variables.rank);
  set("LOCAL_WORLD_SIZE", variables.size);
  set("MASTER_PORT", variables.port);
  set("SCALETRAIN_RESTART", variables.restart);
  set("SCALETRAIN_LAUNCH", variables.launch);
  setenv("MASTER_ADDR", "127.0.0.1", 1);
  setenv("SCALETRAIN_RANKS_FROM", "torchrun", 1);  // not the variables that mpirun or Slurm set for the launcher itself
}

/// Runs in the child. Returns only if the program cannot be started, with errno.
void become(const std::vector<std::string>& program, const RankVariables& variables, const int (&outputs)[2], pid_t launcher) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != launcher) _exit(0);  // the launcher ended before prctl took effect
  if (variables.rank > 0 || isatty(STDIN_FILENO) == 1) {
    const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0) return;
  }
  if (dup2(outputs[kStdout], STDOUT_FILENO) < 0 || dup2(outputs[kStderr], STDERR_FILENO) < 0) return;
  set_variables(variables);
  std::vector<char*> words;
  for (const std::string& word : program) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execvp(words[0], words.data());
}

std::string prefix_of(int rank) { return "[rank " + std::to_string(rank) + "] "; }

}  // namespace

RankProcess::RankProcess(const std::vector<std::string>& program, const RankVariables& variables, const SignalQueue& signals)
    : lines_{PrefixedLines(prefix_of(variables.rank), kStdout), PrefixedLines(prefix_of(variables.rank), kStderr)} {
  Pipe out, err, problem;
  const pid_t launcher = getpid();
  process_ = fork();
  if (process_ < 0)
    throw Failure(kFailed, "launch: rank " + std::to_string(variables.rank) + " could not be started: " + std::strerror(errno));
  if (process_ == 0) {
    signals.restore();
    become(program, variables, {out.ends[1], err.ends[1]}, launcher);
    const int reason = errno;
    [[maybe_unused]] const ssize_t written = ::write(problem.ends[1], &reason, sizeof reason);
    _exit(127);
  }
  close(problem.give(1));
  int reason = 0;
  if (read(problem.ends[0], &reason, sizeof reason) == sizeof reason) {  // otherwise exec has closed the pipe
    waitpid(process_, nullptr, 0);
    const bool is_no_program = reason != EMFILE && reason != ENFILE && reason != ENOMEM && reason != EAGAIN;
    throw Failure(is_no_program ? kRefused : kFailed, "launch: cannot start " + program[0] + ": " + std::strerror(reason));
  }
  outputs_ = {out.give(0), err.give(0)};
  for (const int output : outputs_) fcntl(output, F_SETFL, O_NONBLOCK);
}

RankProcess::~RankProcess() {
  for (const int output : outputs_)
    if (output >= 0) close(output);
}

void RankProcess::read_some(int stream, Console& console) {
  char bytes[16 << 10];
  const ssize_t count = read(outputs_[stream], bytes, sizeof bytes);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count > 0) return lines_[stream].take({bytes, static_cast<size_t>(count)}, console);
  close(std::exchange(outputs_[stream], -1));
  lines_[stream].finish(console);
}

void RankProcess::close_outputs(Console& console) {
  for (const int stream : {kStdout, kStderr}) {
    if (outputs_[stream] < 0) continue;
    close(std::exchange(outputs_[stream], -1));
    lines_[stream].finish(console);
  }
}

void RankProcess::signal(int number) const { kill(-process_, number); }
void RankProcess::ask(int number) const { signal_who_handles(process_, number); }

bool RankProcess::is_gone() const { return has_ended_ && outputs_[kStdout] < 0 && outputs_[kStderr] < 0 && kill(-process_, 0) != 0; }

}  // namespace cli
