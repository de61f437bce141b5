// Shape rules of host-defined ops. Results of callbacks are checked, because memory is planned from them.
#include <cmath>

#include "base/callback_reason.h"
#include "ir/host_op.h"
#include "ir/shape_rules.h"

namespace st::shape_rule {
namespace {

constexpr double kMaxElements = 0x1p48;  // a larger shape is a mistake, and products of it would overflow

HostType host_type_of(const Type& type) {
  HostType out{.dtype = static_cast<int32_t>(type.dtype), .rank = type.shape.rank(), .dims = {}};
  std::ranges::copy(type.shape.dims(), out.dims.begin());
  return out;
}

std::string inputs_of(const OpTypes& op) {
  std::string out;
  for (const Type& type : op.in) out += text(out.empty() ? "" : ", ", type);
  return out.empty() ? "none" : out;
}

/// Checks what the callback `shape` returned for one output.
class Answer {
 public:
  Answer(const OpTypes& op, const HostOp& host, const HostType& type, size_t output) : op_(op), host_(host), type_(type), output_(output) {}

  Type checked() const {
    hold(type_.dtype >= static_cast<int32_t>(DType::f32) && type_.dtype <= static_cast<int32_t>(DType::boolean), "dtype ", type_.dtype,
         ", which does not exist");
    hold(type_.rank >= 0 && type_.rank <= kMaxDims, "rank ", type_.rank, ", must be 0 to ", kMaxDims);
    const Shape shape(std::span(type_.dims).first(static_cast<size_t>(type_.rank)));
    const bool batch_known = std::ranges::none_of(op_.in, [](const Type& in) { return in.shape.is_symbolic(); });
    double elements = 1;
    for (const int64_t dim : shape) {
      hold(dim >= 0 || !batch_known, "shape ", shape, ", but no input depends on the batch, so no dimension may be negative");
      elements *= std::abs(static_cast<double>(dim));
    }
    hold(elements <= kMaxElements, "shape ", shape, ", more than 2^48 elements");
    return typed(static_cast<DType>(type_.dtype), shape);
  }

 private:
  template <class... Parts>
  void hold(bool holds, const Parts&... said) const {
    if (holds) return;
    fail(Code::callback, text(name(op_), ": the shape callback of \"", host_.name, "\" gave output ", output_, " ", text(said...),
                              " (inputs: ", inputs_of(op_), ")"));
  }

  const OpTypes& op_;
  const HostOp& host_;
  const HostType& type_;
  size_t output_;
};

}  // namespace

Outputs host(const OpTypes& op) {
  const auto host = host_op_of(name(op), op.attrs.integer("id"));
  check(op.in.size() <= kMaxHostInputs, name(op), ": \"", host->name, "\" has ", op.in.size(), " inputs, at most ", kMaxHostInputs,
        " are allowed; concat some first");
  std::vector<HostType> in, out(static_cast<size_t>(host->outputs));
  for (const Type& type : op.in) in.push_back(host_type_of(type));
  const int32_t status = host->shape(in, out);
  if (status != 0)
    fail(Code::callback,
         text(name(op), ": the shape callback of \"", host->name, "\" returned ", text_of_answer(status), " for inputs ", inputs_of(op)));
  Outputs types;
  for (size_t i = 0; i < out.size(); ++i) types.push_back(Answer(op, *host, out[i], i).checked());
  return types;
}

// Operands: the forward inputs, the forward outputs, and a gradient for each floating one of those.
Outputs host_backward(const OpTypes& op) {
  const auto host = host_op_of(name(op), op.attrs.integer("id"));
  const int64_t inputs = op.attrs.integer("inputs"), outputs = host->outputs;
  const auto given = static_cast<int64_t>(op.in.size());
  check(inputs >= 0 && inputs <= kMaxHostInputs && given >= inputs + outputs, name(op), ": \"", host->name, "\" has ", inputs,
        " inputs and ", outputs, " outputs, got ", given, " operands");
  int64_t gradient = inputs + outputs;
  for (int64_t y = inputs; y < inputs + outputs; ++y) {
    if (!is_floating(op.in[static_cast<size_t>(y)].dtype)) continue;
    check(gradient < given, name(op), ": \"", host->name, "\" lacks the gradient of output ", y - inputs);
    check_same_type(op, static_cast<size_t>(y), static_cast<size_t>(gradient++));
  }
  check(gradient == given, name(op), ": \"", host->name, "\" got ", given - gradient, " operands too many");
  Outputs types;
  for (const int64_t wanted : op.attrs.ints("wanted")) {
    check(wanted >= 0 && wanted < inputs, name(op), ": \"", host->name, "\" has no input ", wanted);
    const Type& x = op.in[static_cast<size_t>(wanted)];
    types.push_back(typed(x.dtype, x.shape));
  }
  return types;
}

}  // namespace st::shape_rule
