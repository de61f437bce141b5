// Pipes behind functions of C: the host's own, or a plug-in's.
#pragma once

#include <scaletrain/transport.h>

#include <memory>
#include <string>

#include "comm/pipes/pipes.h"

namespace st {

/// Takes the callbacks over: release is called when the pipes end, and where this throws; `kept` goes after that. Throws invalid_argument
/// where one is missing.
std::unique_ptr<Pipes> make_callback_pipes(std::string name, int rank, int size, const st_transport_callbacks& callbacks, void* user,
                                           std::shared_ptr<void> kept = nullptr);

}  // namespace st
