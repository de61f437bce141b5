// Signals that ask for something (SIGUSR1: save now), and would end whom nobody has told what they mean.
#pragma once

#include <sys/types.h>

namespace cli {

/// To those processes of the group that catch the signal. Who holds it back is not asked: a shell does for moments, and would end then.
void signal_who_handles(pid_t group, int number);

}  // namespace cli
