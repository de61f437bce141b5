#include <algorithm>
#include <array>
#include <utility>

#include "base/callback_reason.h"
#include "context_object.h"
#include "guard.h"
#include "host_face.h"
#include "named_op.h"

namespace st::capi {

NamedOp named_op(const Context& context, const std::string& name, const Attrs& given) {
  const HostOps& hosts = context.host_ops();
  if (const auto attrs = hosts.attrs_of(name)) {
    check(given.all().empty(), "op \"", name, "\" is the host's own and takes no attributes; use its user pointer instead");
    return {Op::host, *attrs};
  }
  if (const auto names = hosts.names(); !names.empty()) {
    std::vector<std::string> known = names;
    for (int32_t i = 0; i < kOps; ++i) known.emplace_back(name_of(static_cast<Op>(i)));
    const std::string near = nearest(name, known);
    require(std::ranges::find(names, near) == names.end(), Code::not_found, "op: \"", name, "\" is unknown; did you mean \"", near, "\"?");
  }
  const Op op = op_named(name);
  check(is_for_models(op), name, " is used by the runtime only, not in models");
  return {op, given};
}

namespace {

template <size_t kMost>
class CViews {
 public:
  explicit CViews(std::span<const OpView> views) {
    for (size_t i = 0; i < views.size(); ++i)
      views_[i] = {static_cast<st_dtype>(views[i].dtype),
                   static_cast<int32_t>(views[i].dims.size()),
                   views[i].dims.data(),
                   nullptr,
                   views[i].data,
                   views[i].bytes,
                   0,
                   0};
  }
  const st_view* data() const { return views_.data(); }

 private:
  std::array<st_view, kMost> views_{};
};

using Inputs = CViews<kMaxHostInputs>;
using Outputs = CViews<kMaxHostOutputs>;

int32_t count(const auto& items) { return static_cast<int32_t>(items.size()); }

HostOp::Shapes shapes_by(st_op_shape_fn shape, void* user) {
  if (shape == nullptr) return {};
  return [shape, user](std::span<const HostType> in, std::span<HostType> out) -> int32_t {
    std::array<st_op_type, kMaxHostInputs> inputs{};
    std::array<st_op_type, kMaxHostOutputs> outputs{};
    for (size_t i = 0; i < in.size(); ++i) {
      inputs[i].dtype = in[i].dtype;
      inputs[i].rank = in[i].rank;
      std::ranges::copy(in[i].dims, inputs[i].dims);
    }
    const st_status status = ask_host(shape, user, count(in), inputs.data(), count(out), outputs.data());
    for (size_t i = 0; i < out.size(); ++i) {
      out[i] = {.dtype = outputs[i].dtype, .rank = outputs[i].rank, .dims = {}};
      std::ranges::copy(outputs[i].dims, out[i].dims.begin());
    }
    return status;
  };
}

HostOp::Forward forward_by(st_op_forward_fn forward, void* user) {
  if (forward == nullptr) return {};
  return [forward, user](std::span<const OpView> in, std::span<const OpView> out) -> int32_t {
    return ask_host(forward, user, count(in), Inputs(in).data(), count(out), Outputs(out).data());
  };
}

HostOp::Backward backward_by(st_op_backward_fn backward, void* user) {
  if (backward == nullptr) return {};
  return [backward, user](std::span<const OpView> in, std::span<const OpView> out, std::span<const OpView> d_out,
                          std::span<const OpView> d_in) -> int32_t {
    return ask_host(backward, user, count(in), Inputs(in).data(), count(out), Outputs(out).data(), Outputs(d_out).data(),
                    Inputs(d_in).data());
  };
}

}  // namespace
}  // namespace st::capi

using namespace st;
using namespace st::capi;

st_status st_op_callbacks_init(st_op_callbacks* callbacks, size_t size) {
  st_op_callbacks defaults{};
  defaults.outputs = 1;
  return init(callbacks, size, defaults);
}

st_status st_op_register(st_context* context, const char* name, const st_op_callbacks* callbacks, void* user) {
  return guard([&] {
    const auto object = peek(context);
    const st_op_callbacks ours = take(callbacks, "st_op_register: callbacks");
    HostOp op{.name = text_given(name, "st_op_register: name"),
              .outputs = ours.outputs,
              .shape = shapes_by(ours.shape, user),
              .forward = forward_by(ours.forward, user),
              .backward = backward_by(ours.backward, user)};
    try {
      object->context->host_ops().add(std::move(op));
    } catch (const Error& error) {
      throw Error(error.code(), text("st_op_register: ", error.message()));
    }
  });
}
