#include "launch_command.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <memory>

#include "rank_launch.h"

namespace cli {
namespace {

constexpr int64_t kMostRanks = 1024;

struct LaunchOptions {
  std::string ranks, restarts = "0", min_ranks, grace = "10", port;
};
// Options that take the next word as their value.
constexpr const char* kLaunchOptions[] = {"-n", "--restarts", "--min-ranks", "--grace", "--port"};

constexpr const char* kLaunchHelp =
    "Each rank has RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT, as under torchrun, and SCALETRAIN_RESTART, "
    "0 "
    "at\n"
    "the first start. Its output is printed line by line after [rank 2]. Rank 0 has the launcher's input unless that is a terminal.\n"
    "\n"
    "SIGINT, SIGTERM and SIGHUP go to all ranks and the processes that they started, SIGUSR1 to those that handle it. When a rank\n"
    "fails, the others get SIGTERM, and SIGKILL after the grace period. Processes that a rank leaves running get the grace period, too; a\n"
    "second signal starts it for all. None outlives the launcher.\n"
    "\n"
    "With --restarts, a program that resumes from its newest checkpoint (scaletrain train --checkpoint DIR --resume) survives the loss of "
    "a "
    "rank.\n"
    "A rank that ends with 2 had a wrong request; it is not restarted.\n"
    "\n"
    "Exit status: 0 all ranks are done; 2 the request was wrong, or the first rank that failed ended with 2; 3 one failed otherwise;\n"
    "129, 130 or 143 ended by SIGHUP, Ctrl-C (SIGINT) or SIGTERM.";

int64_t number_in(const char* option, const std::string& value, int64_t least, int64_t most) {
  const int64_t number = whole_number(option, value);
  if (number < least || number > most) refuse(option, " is ", number, "; give ", least, " to ", most);
  return number;
}

/// Otherwise one of our pipes could become the stdout that this program was started without.
void open_standard_streams() {
  while (true) {
    const int opened = open("/dev/null", O_RDWR);
    if (opened > STDERR_FILENO) close(opened);
    if (opened < 0 || opened > STDERR_FILENO) return;
  }
}

std::string again_text(const LaunchOutcome& outcome, const LaunchRequest& next, int64_t restarts) {
  return "launch: " + outcome.failure + "; restart " + std::to_string(next.restart) + " of " + std::to_string(restarts) + ", with " +
         std::to_string(next.ranks) + (next.ranks == 1 ? " rank" : " ranks");
}

std::string after_text(int restarts) {
  return restarts == 0 ? "" : ", after " + std::to_string(restarts) + (restarts == 1 ? " restart" : " restarts");
}

int run_launch(const LaunchOptions& o, const std::vector<std::string>& program) {
  if (o.ranks.empty()) refuse("launch: -n is missing; give the number of ranks");
  LaunchRequest request;
  request.ranks = static_cast<int>(number_in("-n", o.ranks, 1, kMostRanks));
  const int64_t restarts = number_in("--restarts", o.restarts, 0, 1'000'000);
  const auto min_ranks = static_cast<int>(o.min_ranks.empty() ? request.ranks : number_in("--min-ranks", o.min_ranks, 1, request.ranks));
  if (min_ranks < request.ranks && restarts == 0) refuse("--min-ranks needs --restarts; give the number of restarts");
  request.grace = real_number("--grace", o.grace);
  if (request.grace < 0 || request.grace > 1e6) refuse("--grace is ", o.grace, "; give 0 to 1000000 seconds");
  if (!o.port.empty()) request.port = static_cast<int>(number_in("--port", o.port, 1, 65535));
  if (program.empty() || program.front().empty()) refuse("launch: name a program: scaletrain launch -n ", o.ranks, " -- PROGRAM ...");
  request.program = program;

  open_standard_streams();
  Console console;
  SignalQueue signals({SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGUSR1});
  while (true) {
    const LaunchOutcome outcome = RankLaunch(request, console, signals).run();
    const std::string failure = outcome.failure.empty() ? "" : "launch: " + outcome.failure;
    if (outcome.signal != 0)
      throw Failure(128 + outcome.signal,
                    "launch: ended by " + signal_name(outcome.signal) + (failure.empty() ? "" : "; " + outcome.failure));
    if (failure.empty()) return kDone;
    if (outcome.exit_status == kRefused || request.restart == restarts || !console.problem().empty())
      throw Failure(outcome.exit_status, failure + after_text(request.restart));
    ++request.restart;
    request.ranks = std::max(request.ranks - 1, min_ranks);
    console.add(kStderr, "scaletrain: ", again_text(outcome, request, restarts));
  }
}

}  // namespace

std::vector<std::string> take_launched_program(int& argc, char** argv) {
  if (argc < 2 || std::string_view(argv[1]) != "launch") return {};
  int first = 2;  // the first argument that is not an option
  while (first < argc && argv[first][0] == '-' && std::string_view(argv[first]) != "--")
    first += std::ranges::find(kLaunchOptions, std::string_view(argv[first])) != std::end(kLaunchOptions) ? 2 : 1;
  if (first >= argc) return {};
  const bool is_marked = std::string_view(argv[first]) == "--";
  std::vector<std::string> program(argv + first + (is_marked ? 1 : 0), argv + argc);
  argc = first;
  return program;
}

Command launch_command(CLI::App& app, const std::vector<std::string>& program) {
  auto o = std::make_shared<LaunchOptions>();
  CLI::App* command =
      app.add_subcommand("launch",
                         "start a program as several ranks on this machine: launch -n N -- PROGRAM ...; not needed under srun, mpirun or "
                         "torchrun");
  add_text(*command, "-n", o->ranks, "ranks");
  add_text(*command, "--restarts", o->restarts, "how often all ranks are started again after a failure [0]");
  add_text(*command, "--min-ranks", o->min_ranks, "each restart has one rank fewer, down to this number [as -n]");
  add_text(*command, "--grace", o->grace, "seconds for ranks to end before they are killed [10]");
  add_text(*command, "--port", o->port, "MASTER_PORT, for the ranks' rendezvous [a free one]");
  command->footer(kLaunchHelp);
  return {command, [o, program] { return run_launch(*o, program); }};
}

}  // namespace cli
