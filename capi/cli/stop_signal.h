// Ctrl-C and SIGTERM: the first asks for a clean end after the running step, the second ends the process at once.
#pragma once

namespace cli {

/// From here on, for the rest of the process. The library installs no handlers; the program may.
void catch_stop_signals();

/// The signal that came, 0 for none.
int stop_signal();

}  // namespace cli
