// A run that does nothing but save and resume, for kill_test.py to kill.
//   saving_process check FOLDER   reads and compares all checkpoints; prints "steps 31 30", newest first, or what is wrong, with status 3
//   saving_process save FOLDER    resumes the newest and saves the steps after it forever, three of four in the background; keeps two:
//                                 "resumed 31", "committed 32", ...
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "base/error.h"
#include "step_state.h"

namespace {

void say(const std::string& line) {
  std::puts(line.c_str());
  std::fflush(stdout);  // so that a kill loses no output
}

int refuse(const std::string& why) {
  say("refused: " + why);
  return 3;
}

int check(const std::string& folder) {
  st::Workers workers(1);
  const std::string steps = st::steps_of(folder, workers);
  if (steps.starts_with("problem")) return refuse(steps);
  say("steps " + steps);
  return 0;
}

int save(const std::string& folder) {
  st::Workers workers(2);
  st::CheckpointManager manager(
      folder, {.retention = {.last = 2, .every = 0, .best = 0, .higher_is_better = false}, .best = "", .write = {}, .queue = 1},
      std::make_shared<st::MemorySource>(), {});
  if (!manager.folder().leftovers().empty()) return refuse("a leftover was not removed: " + manager.folder().leftovers().front());
  int64_t step = 0;
  const auto entries = manager.folder().list();
  if (!entries.empty()) {
    step = entries.front().step;
    const std::string problem = st::problem_of(manager.folder().path_of("latest"), step, workers);
    if (!problem.empty()) return refuse(problem);
    manager.adopt_earlier();
  }
  say("resumed " + std::to_string(step));
  for (int64_t told = step;;) {
    ++step;
    if (step % 4 == 0)
      manager.save_now(st::state_at(step), workers);
    else
      manager.save(st::state_at(step), workers);
    if (const auto error = manager.take_error()) return refuse(error->message());
    if (const int64_t saved = manager.saved_step(); saved > told) say("committed " + std::to_string(told = saved));
  }
}

}  // namespace

int main(int count, char** arguments) {
  try {
    if (count == 3 && std::strcmp(arguments[1], "check") == 0) return check(arguments[2]);
    if (count == 3 && std::strcmp(arguments[1], "save") == 0) return save(arguments[2]);
    return refuse("saving_process check|save FOLDER");
  } catch (const st::Error& error) {
    return refuse(error.message());
  }
}
