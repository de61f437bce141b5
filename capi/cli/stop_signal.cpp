#include "stop_signal.h"

#include <csignal>

namespace cli {
namespace {

volatile std::sig_atomic_t g_signal = 0;

}  // namespace

void catch_stop_signals() {
  struct sigaction action {};
  action.sa_handler = [](int signal) { g_signal = signal; };
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);  // the second one finds the default: it kills
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

int stop_signal() { return g_signal; }

}  // namespace cli
