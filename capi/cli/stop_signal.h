// SIGINT (Ctrl-C), SIGTERM and SIGHUP (a closed terminal or ssh session): the first one asks for a clean end after the current step, the
// second ends the process at once. SIGUSR1 asks for a checkpoint.
#pragma once

namespace cli {

/// Takes effect for the rest of the process. The library installs no handlers; the program may. An ignored SIGHUP (nohup) stays ignored.
void catch_stop_signals();

/// The signal received, 0 if none.
int stop_signal();

/// As catch_stop_signals, for SIGUSR1.
void catch_save_signal();

/// Whether SIGUSR1 has arrived since the last call.
bool take_save_signal();

}  // namespace cli
