#include "train/model.h"

#include <cstring>

#include "guard.h"
#include "models/builtin.h"
#include "objects.h"

using namespace st;
using namespace st::capi;

namespace {

std::shared_ptr<ModelObject> make_model(const std::shared_ptr<Context>& context, Program program, int64_t seed) {
  const FloatMode mode;  // the host's rounding must not reach the first weights
  auto object = std::make_shared<ModelObject>();
  object->model = std::make_shared<Model>(context, std::move(program), static_cast<uint64_t>(seed));
  return object;
}

/// A view that has exactly the parameter's type and room.
void check_view(const st_view* view, const Slot& slot, const char* call) {
  check(view != nullptr, call, ": view is NULL");
  check(view->dtype == static_cast<st_dtype>(slot.type.dtype), call, ": \"", slot.name, "\" is ", slot.type.dtype, ", the view's dtype is ",
        view->dtype);
  check(view->rank == slot.type.shape.rank() && (view->rank == 0 || view->dims != nullptr), call, ": \"", slot.name, "\" has shape ",
        slot.type.shape, ", the view has ", view->rank, " dimensions");
  const Shape shape(std::span<const int64_t>(view->dims, static_cast<size_t>(view->rank)));
  check(shape == slot.type.shape, call, ": \"", slot.name, "\" has shape ", slot.type.shape, ", the view's is ", shape);
  require(view->strides == nullptr, Code::unsupported, call, ": views with strides are not taken yet; pass NULL for row-major");
  check(view->data != nullptr && view->bytes >= slot.type.bytes(), call, ": \"", slot.name, "\" needs ", slot.type.bytes(),
        " bytes, the view has ", view->data == nullptr ? 0 : view->bytes);
}

}  // namespace

st_status st_model_create(st_graph* graph, int64_t seed, st_model** model) {
  return guard([&] {
    given(model, "st_model_create: model");
    const auto g = find(graph);
    if (g->first_error) throw *g->first_error;
    hand_out(model, make_model(g->context, g->program, seed));
  });
}

st_status st_model_builtin(st_context* context, const char* name, const char* json, int64_t seed, st_model** model) {
  return guard([&] {
    given(model, "st_model_builtin: model");
    check(name != nullptr, "st_model_builtin: name is NULL; use \"gpt\" or \"mlp\"");
    const std::string options = json == nullptr ? "" : json;
    const auto c = peek(context)->context;
    c->require_memory(text("model ", name, ": its parameters"), 4 * builtin_parameter_count(name, options));
    hand_out(model, make_model(c, build_builtin(name, options), seed));
  });
}

st_status st_model_destroy(st_model* model) {
  return guard([&] { drop(model); });
}

st_status st_parameter_info_init(st_parameter_info* info, size_t size) { return init(info, size, st_parameter_info{}); }

st_status st_model_parameter_count(st_model* model, int64_t* count) {
  return guard([&] { given(count, "st_model_parameter_count: count") = static_cast<int64_t>(peek(model)->model->parameters().size()); });
}

st_status st_model_parameter(st_model* model, int64_t index, st_parameter_info* info) {
  return guard([&] {
    const auto object = peek(model);
    const auto& ids = object->model->parameters();
    check(index >= 0 && index < static_cast<int64_t>(ids.size()), "st_model_parameter: index ", index, " of ", ids.size(), " parameters");
    const Slot& slot = object->model->slot(ids[static_cast<size_t>(index)]);
    st_parameter_info ours{};
    ours.dtype = static_cast<st_dtype>(slot.type.dtype);
    ours.name = slot.name.c_str();
    ours.rank = slot.type.shape.rank();
    ours.trainable = slot.trainable ? 1 : 0;
    std::ranges::copy(slot.type.shape.dims(), ours.dims);
    give(info, ours, "st_model_parameter: info");
  });
}

st_status st_model_get(st_model* model, const char* name, const st_view* to) {
  return guard([&] {
    const auto object = find(model);  // BUSY while a step is changing the weights
    const SlotId id = object->model->parameter_named(text_given(name, "st_model_get: name"));
    const Slot& slot = object->model->slot(id);
    check_view(to, slot, "st_model_get");
    object->model->context().backend().to_host(to->data, object->model->data(id), slot.type.bytes());
  });
}

st_status st_model_set(st_model* model, const char* name, const st_view* from) {
  return guard([&] {
    const auto object = find(model);  // BUSY while a step is changing the weights
    const SlotId id = object->model->parameter_named(text_given(name, "st_model_set: name"));
    const Slot& slot = object->model->slot(id);
    check_view(from, slot, "st_model_set");
    object->model->context().backend().to_device(object->model->data(id), from->data, slot.type.bytes());
  });
}

st_status st_model_write_file(st_model* model, const char* path) {
  return guard([&] { find(model)->model->write(text_given(path, "st_model_write_file: path")); });
}

st_status st_model_read_file(st_model* model, const char* path) {
  return guard([&] { find(model)->model->read(text_given(path, "st_model_read_file: path")); });
}
