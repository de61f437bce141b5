// NCCL, libnccl.so.2: the functions of it that we call, found at run time.
#pragma once

#include <nccl.h>

#include <memory>
#include <string>

#include "base/os/loaded_library.h"

namespace st::nccl {

#define ST_NCCL_FUNCTIONS(ROW) \
  ROW(ncclGetVersion)          \
  ROW(ncclGetErrorString)      \
  ROW(ncclGetLastError)        \
  ROW(ncclGetUniqueId)         \
  ROW(ncclCommInitRankConfig)  \
  ROW(ncclCommGetAsyncError)   \
  ROW(ncclCommAbort)           \
  ROW(ncclGroupStart)          \
  ROW(ncclGroupEnd)            \
  ROW(ncclSend)                \
  ROW(ncclRecv)                \
  ROW(ncclAllReduce)           \
  ROW(ncclReduceScatter)       \
  ROW(ncclAllGather)           \
  ROW(ncclReduce)              \
  ROW(ncclBroadcast)

struct Library {
#define ST_MEMBER(function) decltype(&::function) function = nullptr;
  ST_NCCL_FUNCTIONS(ST_MEMBER)
#undef ST_MEMBER
  std::string file;
  int version = 0;  // NCCL_VERSION_CODE of the library: 22809 is 2.28.9

  std::string version_text() const;
  /// Throws unavailable, with what was called, NCCL's words for `result` and those of its last error. ncclInProgress is no error.
  void must(ncclResult_t result, const char* called, ncclComm_t of = nullptr) const;
};

/// Throws unavailable with the file, and what is wrong with it: a function that it lacks, its version.
std::shared_ptr<const Library> functions_of(const os::LoadedLibrary& library);

}  // namespace st::nccl
