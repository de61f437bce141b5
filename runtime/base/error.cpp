#include "base/error.h"

#include <new>

#include "base/error_of.h"

namespace st {

Error::~Error() = default;

void fail(Code code, std::string message) { throw Error(code, std::move(message)); }

Error error_of(const std::exception_ptr& thrown, std::string_view operation) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    return error;
  } catch (const std::bad_alloc&) {
    return {Code::out_of_memory, text(operation, "out of memory")};
  } catch (const std::exception& other) {
    return {Code::internal, text(operation, other.what())};
  }
}

}  // namespace st
