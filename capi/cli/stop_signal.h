// SIGINT (Ctrl-C), SIGTERM and SIGHUP (a terminal or an ssh session that closes): the first asks for a clean end after the running step,
// the second ends the process at once. SIGUSR1 asks for a checkpoint.
#pragma once

namespace cli {

/// From here on, for the rest of the process. The library installs no handlers; the program may. A SIGHUP that was ignored stays so
/// (nohup).
void catch_stop_signals();

/// The signal that came, 0 for none.
int stop_signal();

/// As catch_stop_signals, for SIGUSR1: a run without checkpoints leaves it alone.
void catch_save_signal();

/// Whether it came since this was last asked.
bool take_save_signal();

}  // namespace cli
