#include "exec/device_operands.h"

#include "base/error.h"
#include "base/text.h"

namespace st {

void require_on_device(const Backend& backend, Address place, int64_t bytes, std::string_view what) {
  if (!place || bytes == 0 || backend.holds(place, bytes)) return;
  fail(Code::invalid_argument, text(what, " is not in the memory of device ", backend.name(),
                                    ": it is of another device, or has been freed; copy it to this device first"));
}

void require_on_device(const Backend& backend, const Call& call, Op op, std::string_view what) {
  const auto look = [&](std::span<const Operand> operands, const char* kind) {
    for (size_t i = 0; i < operands.size(); ++i) {
      const int64_t bytes = operands[i].elements() * bytes_of(operands[i].dtype);
      if (!operands[i].data || bytes == 0 || backend.holds(operands[i].data, bytes)) continue;  // texts are built only on failure
      require_on_device(backend, operands[i].data, bytes, text(name_of(op), " of ", what, ": ", kind, " operand ", i));
    }
  };
  look(call.in, "input");
  look(call.out, "output");
  look(call.reads, "read");
  look(call.writes, "written");
}

}  // namespace st
