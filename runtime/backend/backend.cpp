#include "backend/backend.h"

#include "base/error.h"

namespace st {

std::unique_ptr<AdoptedStream> Backend::adopt(int64_t /*handle*/) {
  fail(Code::unsupported, text("stream: ", name(), " has no streams that a host can give; use a context of device cuda"));
}

}  // namespace st
