#include "handled_signal.h"

#include <dirent.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>

namespace cli {
namespace {

bool handles(const char* process, int number) {
  std::ifstream status(std::string("/proc/") + process + "/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("SigCgt:")) return ((std::strtoull(line.c_str() + 7, nullptr, 16) >> (number - 1)) & 1) != 0;
  return false;
}

}  // namespace

void signal_who_handles(pid_t group, int number) {
  const std::unique_ptr<DIR, int (*)(DIR*)> processes(opendir("/proc"), closedir);
  if (!processes) return;
  while (const dirent* entry = readdir(processes.get())) {
    const auto process = static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10));  // 0 if the entry is no process
    if (process > 0 && getpgid(process) == group && handles(entry->d_name, number)) kill(process, number);
  }
}

}  // namespace cli
