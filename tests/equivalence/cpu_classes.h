// Runs every kernel class of the cpu backend that this machine supports, forced by an environment variable.
#pragma once

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/error.h"

namespace st {

/// Contexts and backends made in its lifetime use this class.
class ForcedClass {
 public:
  explicit ForcedClass(const std::string& name) { setenv("SCALETRAIN_ISA", name.c_str(), 1); }
  ~ForcedClass() { unsetenv("SCALETRAIN_ISA"); }
  ForcedClass(const ForcedClass&) = delete;
  ForcedClass& operator=(const ForcedClass&) = delete;
};

inline std::vector<std::string> cpu_classes() {
  std::vector<std::string> names;
  for (const char* name : {"portable", "avx2", "avx512", "avx512_bf16", "amx_bf16"}) {
    const ForcedClass forced(name);
    try {
      make_cpu_backend();
      names.emplace_back(name);
    } catch (const Error&) {  // not supported by this machine
    }
  }
  return names;
}

}  // namespace st
