// scaletrain: parses the command line, runs one command, and turns any error into one line on stderr and an exit status.
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <string>

#include "launch_command.h"
#include "options.h"
#include "run_ranks.h"

namespace {

using namespace cli;

constexpr const char* kExitStatus =
    "Exit status: 0 done; 2 the request was wrong or cannot be met here; 3 it failed while running;\n"
    "129, 130 or 143 ended by SIGHUP, Ctrl-C (SIGINT) or SIGTERM after the current step, with state saved and the log complete.";

constexpr const char* kCommands = "; use info, train, plan, launch, bench or checkpoint";

/// Without the last collectives of an error that ends a group, which follow after a blank line, unless ranks are debugged.
std::string one_line(std::string message) {
  if (!is_debugging_ranks()) message.resize(std::min(message.size(), message.find("\n\n")));
  while (!message.empty() && message.back() == '\n') message.pop_back();
  std::ranges::replace(message, '\n', ' ');
  // The message may contain a name from a file, which must not control a terminal.
  std::ranges::replace_if(
      message, [](char c) { return (c >= 0 && c < ' ' && c != '\t') || c == '\x7f'; }, '?');
  return message;
}

[[noreturn]] void refuse_command(const std::vector<std::string>& words, const std::vector<Command>& commands) {
  if (words.empty()) refuse("no command", kCommands, " (scaletrain --help)");
  std::vector<std::string> known;
  for (const Command& command : commands) known.push_back(command.app->get_name());
  const std::string near = nearest(words.front(), known);
  refuse("unknown ", words.front().starts_with("-") ? "option " : "command ", words.front(),
         near.empty() ? kCommands : "; did you mean " + near + "?");
}

int execute(int argc, char** argv) {
  ask(st_require(ST_VERSION_MAJOR, ST_VERSION_MINOR));
  const std::vector<std::string> launched = take_launched_program(argc, argv);
  CLI::App app("ScaleTrain trains neural networks.", "scaletrain");
  app.set_version_flag("--version", text(st_version));
  app.footer(kExitStatus);
  app.allow_extras();
  const std::vector<Command> commands = {info_command(app),  train_command(app),     plan_command(app), launch_command(app, launched),
                                         bench_command(app), checkpoint_command(app)};
  for (const Command& command : commands) command.app->allow_extras();
  app.require_subcommand(0, 1);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help and --version
    throw Failure(kRefused, error.what());
  }
  for (const Command& command : commands) {
    if (!command.app->parsed()) continue;
    refuse_extras(*command.app);
    return command.run();
  }
  refuse_command(app.remaining(), commands);
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // beyond a file size limit (ulimit -f) a write then fails as on a full disk
  const auto end = [](int exit_status, const std::string& message) {
    std::cout.flush();
    std::cerr << "scaletrain: " + one_line(message) + '\n';  // in one write: a launcher may end us at any moment
    return exit_status;
  };
  try {
    const int exit_status = execute(argc, argv);
    errno = 0;
    const bool is_written = std::cout.flush().good() && std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
    if (is_written || exit_status != kDone) return exit_status;
    const std::string reason = errno == 0 ? "" : std::string(": ") + std::strerror(errno);
    return end(kFailed, "output to stdout could not be written completely" + reason);
  } catch (const Failure& failure) {
    return end(failure.exit_status, failure.what());
  } catch (const std::exception& error) {
    return end(kFailed, error.what());
  }
}
