// Another device in place of the host's, for tests that are run on it too.
#pragma once

#include <functional>
#include <string>

#include "parts/context.h"

namespace st {

/// Makes the maker of a context's backend instead of `device`'s own (cpu, reference). Empty: the device's own is tested. delayed_device.cpp
/// sets it where it is linked and ST_TEST_DEVICE says so.
inline std::function<BackendMaker(const std::string& device)> tested_device;

inline BackendMaker tested_backend(const std::string& device) { return tested_device ? tested_device(device) : BackendMaker(); }

}  // namespace st
