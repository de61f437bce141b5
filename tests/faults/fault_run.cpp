#include "fault_run.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <exception>
#include <stdexcept>
#include <utility>

#include "base/os/machine.h"

namespace st {

FaultRun::FaultRun()
    : scratch_(std::filesystem::path(testing::TempDir()) /
               text("st_faults_", os::process_id(), "_", testing::UnitTest::GetInstance()->current_test_info()->name())),
      path_(scratch_ / "run") {
  std::filesystem::create_directories(scratch_);
}

FaultRun::~FaultRun() { std::filesystem::remove_all(scratch_); }

ManagerOptions FaultRun::keep_last(int64_t n) {
  ManagerOptions options;
  options.retention.last = n;
  return options;
}

std::optional<Error> FaultRun::save(CheckpointManager& manager, int64_t step) {
  const Error error = error_of([&] { manager.save(state_at(step), workers_)->wait(-1); });
  return error.code() == Code::ok ? std::nullopt : std::optional(error);
}

namespace {

struct Pipe {
  std::array<int, 2> ends{-1, -1};  // reading end, writing end
  Pipe() {
    if (pipe(ends.data()) != 0) throw std::runtime_error("no pipe");
  }
  void close_end(size_t end) { close(std::exchange(ends[end], -1)); }
  ~Pipe() {
    for (const int end : ends)
      if (end >= 0) close(end);
  }
};

std::string all_of(int file) {
  std::string all;
  std::array<char, 512> piece;
  for (ssize_t n = 1; n > 0;) {
    n = read(file, piece.data(), piece.size());
    if (n > 0) all.append(piece.data(), static_cast<size_t>(n));
  }
  return all;
}

}  // namespace

std::string in_child(const std::function<std::string()>& body) {
  Pipe pipe;
  const pid_t child = fork();
  if (child == 0) {
    std::string said;
    try {
      said = body();
    } catch (const std::exception& error) {
      said = text("threw ", error.what());
    }
    const bool told = write(pipe.ends[1], said.data(), said.size()) == std::ssize(said);
    _exit(told ? 0 : 1);
  }
  pipe.close_end(1);
  std::string said = all_of(pipe.ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? said : text("ended with status ", status, " ", said);
}

StayingChild::StayingChild(const std::function<std::shared_ptr<void>()>& body) {
  Pipe pipe;
  process_ = fork();
  if (process_ == 0) {
    const std::shared_ptr<void> kept = body();
    if (write(pipe.ends[1], "x", 1) != 1) _exit(1);
    for (;;) pause();
  }
  pipe.close_end(1);
  std::array<char, 1> ready;
  if (read(pipe.ends[0], ready.data(), 1) != 1) ADD_FAILURE() << "the child has ended";
}

void StayingChild::kill() {
  if (process_ < 0) return;
  ::kill(process_, SIGKILL);
  waitpid(std::exchange(process_, -1), nullptr, 0);
}

}  // namespace st
