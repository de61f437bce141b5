// Waits for an executor's copies when a call fails before its run.
#pragma once

#include <exception>

#include "exec/executor.h"

namespace st {

/// Runs call(). If it throws, waits for the copies that it has given, so that none reads the caller's memory later.
template <class Call>
void finishing_on_error(Executor& executor, const Call& call) {
  try {
    call();
  } catch (...) {
    try {
      executor.finish();
    } catch (const std::exception&) {  // a consequence
    }
    throw;
  }
}

}  // namespace st
