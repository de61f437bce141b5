#include "base/error.h"

namespace st {

Error::~Error() = default;

void fail(Code code, std::string message) { throw Error(code, std::move(message)); }

}  // namespace st
