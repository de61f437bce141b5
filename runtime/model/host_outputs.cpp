#include "model/host_outputs.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace st {
namespace {

/// Equal addresses of the host and of a device are other memory.
bool are_in_one_memory(const HostView& a, const HostView& b) { return a.is_on_device == b.is_on_device && share_memory(a, b); }

}  // namespace

const HostView* view_named(std::span<const HostView> views, std::string_view name) {
  const auto found = std::ranges::find(views, name, &HostView::name);
  return found == views.end() ? nullptr : &*found;
}

void refuse_name(std::string_view what, std::string_view name, const std::vector<std::string>& known) {
  const std::string near = nearest(name, known);
  about_tensor(name, [&] {
    fail(Code::not_found, text(what, " named \"", name, "\"", near.empty() ? "" : text("; did you mean \"", near, "\"?")));
  });
  __builtin_unreachable();
}

void require_distinct(std::string_view what, std::span<const HostView> views) {
  for (size_t i = 1; i < views.size(); ++i)
    check(view_named(views.first(i), views[i].name) == nullptr, what, " \"", views[i].name, "\" is given twice");
}

void check_outputs(std::string_view call, const Program& model, std::span<const HostView> outputs) {
  for (const HostView& view : outputs) {
    if (std::ranges::find(model.outputs, view.name, &Output::name) != model.outputs.end()) continue;
    std::vector<std::string> names;
    for (const Output& output : model.outputs) names.push_back(output.name);
    refuse_name(text(call, ": the model has no output"), view.name, names);
  }
  for (size_t i = 1; i < outputs.size(); ++i) {
    check(view_named(outputs.first(i), outputs[i].name) == nullptr, call, ": output \"", outputs[i].name, "\" is given twice");
    // Arrays that share memory would hold a mixture; the columns of one table do not.
    for (size_t j = 0; j < i; ++j)
      check(!are_in_one_memory(outputs[i], outputs[j]), call, ": the views for outputs \"", outputs[j].name, "\" and \"", outputs[i].name,
            "\" share memory; give each its own");
  }
}

void require_apart_from(std::string_view call, std::span<const HostView> batch, std::span<const HostView> outputs) {
  for (const HostView& output : outputs)
    for (const HostView& input : batch)
      check(!are_in_one_memory(output, input), call, ": the view for output \"", output.name, "\" shares memory with input \"", input.name,
            "\", which the backward reads again; give it its own");
}

}  // namespace st
