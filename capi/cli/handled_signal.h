// Signals that are requests (SIGUSR1: save now) but end a process that does not handle them.
#pragma once

#include <sys/types.h>

namespace cli {

/// Sends the signal to those processes of the group that catch it. One that only blocks it gets none: a shell blocks it for moments, and
/// would end when it unblocks.
void signal_who_handles(pid_t group, int number);

}  // namespace cli
