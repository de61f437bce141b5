// Pipes over C functions of the host or of a plug-in.
#pragma once

#include <scaletrain/transport.h>

#include <memory>
#include <string>

#include "comm/pipes/pipes.h"

namespace st {

/// Takes over the callbacks: calls release when the pipes are destroyed, or if this throws. Holds `kept` until after that. Throws
/// invalid_argument if write or read is NULL.
std::unique_ptr<Pipes> make_callback_pipes(std::string name, int rank, int size, const st_transport_callbacks& callbacks, void* user,
                                           std::shared_ptr<void> kept = nullptr);

}  // namespace st
