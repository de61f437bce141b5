#include "op_wrappers.h"

#include <string_view>
#include <variant>

#include "base/error.h"
#include "host_face.h"

namespace st::capi {
namespace {

void require_help(const OpInfo& op) {
  const bool ends = op.help.find("*/") != std::string_view::npos || op.help.find("/*") != std::string_view::npos;
  require(!op.help.empty() && !ends, Code::internal, "ops.def: the help of ", op.name, " must be there and fit into a comment: ", op.help);
}

}  // namespace

bool is_dtype(const OpAttr& attr) { return attr.name == "dtype"; }
bool has_list(const OpAttr& attr) { return std::holds_alternative<Ints>(attr.standard); }
bool takes_list(const OpInfo& op) { return !op.inputs.empty() && op.inputs.back().variadic; }
bool gives_list(const OpInfo& op) { return op.outputs.empty(); }

std::string each_wrapper(std::string (*wrapper_of)(const OpInfo& op)) {
  std::string all;
  for (int32_t i = 0; i < kOps; ++i) {
    if (!is_for_models(static_cast<Op>(i))) continue;
    const OpInfo op = host_face(static_cast<Op>(i));
    require_help(op);
    all += wrapper_of(op);
  }
  return all;
}

}  // namespace st::capi
