#include "stop_signal.h"

#include <csignal>

namespace cli {
namespace {

volatile std::sig_atomic_t g_signal = 0, g_save = 0;

}  // namespace

void catch_stop_signals() {
  struct sigaction action {};
  action.sa_handler = [](int signal) { g_signal = signal; };
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);  // the second signal meets the default action and kills
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  struct sigaction hangup {};
  if (sigaction(SIGHUP, nullptr, &hangup) == 0 && hangup.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);
}

int stop_signal() { return g_signal; }

void catch_save_signal() {
  struct sigaction action {};
  action.sa_handler = [](int) { g_save = 1; };
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGUSR1, &action, nullptr);
}

bool take_save_signal() {
  if (g_save == 0) return false;
  g_save = 0;
  return true;
}

}  // namespace cli
