// An exception of any type as an Error.
#pragma once

#include <exception>
#include <string_view>

#include "base/error.h"

namespace st {

/// `thrown` is not null. `operation` ("checkpoint: ") begins the message of what is no Error: out_of_memory or internal.
Error error_of(const std::exception_ptr& thrown, std::string_view operation = "");

}  // namespace st
