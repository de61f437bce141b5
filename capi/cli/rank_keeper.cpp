#include "rank_keeper.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <set>
#include <string>

#include "failure.h"

namespace cli {
namespace {

[[noreturn]] void keep(int messages) {
  setpgid(0, 0);  // signals to the launcher's group must not reach the keeper
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  // The launcher's reader waits for the end of its output; the keeper must not hold it open.
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(nothing, descriptor);
  std::set<pid_t> groups;
  pid_t message = 0;
  while (read(messages, &message, sizeof message) == sizeof message)
    if (message > 0)
      groups.insert(message);
    else
      groups.erase(-message);
  for (const pid_t group : groups) kill(-group, SIGKILL);
  _exit(0);
}

}  // namespace

RankKeeper::RankKeeper() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw Failure(kFailed, std::string("launch: ") + std::strerror(errno));
  process_ = fork();
  if (process_ == 0) {
    close(ends[1]);
    keep(ends[0]);
  }
  close(ends[0]);
  pipe_ = ends[1];
  if (process_ < 0) {
    close(pipe_);
    throw Failure(kFailed, std::string("launch: ") + std::strerror(errno));
  }
}

RankKeeper::~RankKeeper() {
  close(pipe_);
  waitpid(process_, nullptr, 0);
}

void RankKeeper::send(pid_t message) {
  // If the keeper was killed, ranks still end with the launcher; the processes that they started may not.
  while (::write(pipe_, &message, sizeof message) < 0 && errno == EINTR) continue;
}

}  // namespace cli
