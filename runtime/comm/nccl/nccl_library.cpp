#include "comm/nccl/nccl_library.h"

#include <string_view>

#include "base/error.h"
#include "base/float_mode.h"
#include "base/text.h"

namespace st::nccl {
namespace {

constexpr std::string_view kRemedy = "install NCCL 2.14 or later (PyPI's nvidia-nccl-cu13)";
constexpr int kOldest = NCCL_VERSION(2, 14, 0);  // the first whose communicators start without waiting

}  // namespace

std::string Library::version_text() const {
  const int scale = version < 10000 ? 1000 : 10000;  // until 2.8: 2804 is 2.8.4
  return text(version / scale, ".", version % scale / 100, ".", version % 100);
}

void Library::must(ncclResult_t result, const char* called, ncclComm_t of) const {
  if (result == ncclSuccess || result == ncclInProgress) return;
  const char* const last = ncclGetLastError(of);
  const std::string words = last == nullptr || *last == '\0' ? "" : text(": ", last);
  fail(Code::unavailable, text("nccl: ", called, " returned ", static_cast<int>(result), " (", ncclGetErrorString(result), ")", words,
                               "; NCCL_DEBUG=WARN prints more"));
}

std::shared_ptr<const Library> functions_of(const os::LoadedLibrary& library) {
  const HostsFloatMode mode;  // for threads that it starts
  auto made = std::make_shared<Library>();
  made->file = library.name();
#define ST_FILL(function) library.fill(made->function, #function, "NCCL that this plug-in knows", kRemedy);
  ST_NCCL_FUNCTIONS(ST_FILL)
#undef ST_FILL
  made->must(made->ncclGetVersion(&made->version), "ncclGetVersion");
  require(made->version >= kOldest && made->version < NCCL_VERSION(3, 0, 0), Code::unavailable, made->file, " is NCCL ",
          made->version_text(), ", this plug-in needs 2.14 or a later 2; ", kRemedy);
  return made;
}

}  // namespace st::nccl
