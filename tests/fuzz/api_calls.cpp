#include "api_calls.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "host_callbacks.h"

namespace st::fuzz {
namespace {

#define CALL(function, ...) world.ok(#function, function(__VA_ARGS__))
#define MAKE(function, shelf, ...) keep(world, #function, world.shelf, function(__VA_ARGS__, room(world, world.shelf)))

/// Where the handle goes; now and then nowhere.
template <class T>
T** room(World& world, Shelf<T>& shelf) {
  shelf.made = nullptr;
  return world.bytes.rarely(32) ? nullptr : &shelf.made;
}

template <class T>
void keep(World& world, const char* call, Shelf<T>& shelf, st_status status) {
  world.keep(call, shelf, status, shelf.made);
}

/// A struct with a size before it, of its true size, smaller or larger (with room); now and then not initialised.
template <class T>
T* filled(World& world, st_status (*init)(T*, size_t)) {
  const size_t room = sizeof(T) + (world.bytes.rarely() ? 24 : 0);
  auto* made = static_cast<T*>(world.memory(std::max(room, sizeof(T))));
  std::memset(made, 0, room);
  if (world.bytes.rarely(32)) return nullptr;
  if (world.bytes.rarely(32)) return made;
  if (!world.ok("init", init(made, world.bytes.rarely() ? static_cast<size_t>(world.bytes.next() % 16) : room))) return made;
  if (world.bytes.rarely(32)) reinterpret_cast<uint8_t*>(made)[room - 1] = 1;
  return made;
}

const char* json(World& world) {
  static const std::array<const char*, 20> kTexts = {nullptr,
                                                     "",
                                                     "{}",
                                                     "[]",
                                                     "null",
                                                     "{\"",
                                                     R"({"outputs": 3})",
                                                     R"({"vocabulary": 16, "width": 4})",
                                                     R"({"heads": 2, "groups": 1, "rope": true})",
                                                     R"({"hidden": [4], "outputs": 2})",
                                                     R"({"rate": 0.5})",
                                                     R"({"kind": "rms"})",
                                                     R"({"axis": -1})",
                                                     R"({"axes": [0, 1], "keep_dims": true})",
                                                     R"({"outputs": -1})",
                                                     R"({"outputs": 1e300})",
                                                     R"({"rate": NaN})",
                                                     "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
                                                     R"({"shape": [-1, 9223372036854775807]})",
                                                     R"({"context": 4})"};
  return world.bytes.pick(kTexts);
}

const char* setting(World& world) {
  static const std::array<const char*, 12> kTexts = {"0.01",      "1",          "2",    "0", "-1", "1e308",
                                                     "\"adamw\"", "\"cosine\"", "true", "{", "",   nullptr};
  return world.bytes.pick(kTexts);
}

const char* key(World& world) {
  static const std::array<const char*, 14> kKeys = {"lr",   "batch", "accumulate", "warmup", "lr_schedule",  "optimizer", "clip",
                                                    "seed", "",      "batc",       nullptr,  "weight_decay", "precision", "dropout"};
  return world.bytes.pick(kKeys);
}

std::string path(World& world, const char* side) {
  static const std::array<const char*, 8> kFiles = {"a", "b", "text.txt", "short.txt", "broken.safetensors", "", "none/there", "\xff"};
  return World::folder() + "/" + side + "/" + world.bytes.pick(kFiles);
}

st_value value(World& world) {
  if (world.bytes.rarely()) return static_cast<st_value>(world.number());
  return world.bytes.pick(world.values);
}

void keep_value(World& world, const char* call, st_status status, const st_value& made) {  // read after the call
  if (world.ok(call, status) && world.values.size() < 64) world.values.push_back(made);
}

void context_create(World& world) {
  if (world.contexts.live.size() > 3) return;
  auto* options = filled(world, st_context_options_init);
  if (options != nullptr) {
    static constexpr std::array<int32_t, 6> kThreads = {1, 2, -1, 5000, 1, 1};
    static const std::array<const char*, 6> kDevices = {"cpu", "reference", "cuda", "", "cpu", "cpu"};
    options->threads = world.bytes.pick(kThreads);
    options->device = world.bytes.pick(kDevices);
    // Never 0, what the machine has: gigabytes are filled correctly, but not in time, and under a sanitizer a hundred megabytes neither.
    static constexpr std::array<int64_t, 8> kLimits = {1 << 24, 1 << 24, 1 << 24, 1 << 20,
                                                       1 << 12, 1,       -1,      std::numeric_limits<int64_t>::min()};
    options->memory_limit = world.bytes.pick(kLimits);
    if (world.bytes.rarely(2)) options->log = log_record;
    if (world.bytes.rarely(2)) options->parallel = parallel;
    if (world.bytes.rarely(2)) options->alloc = allocate;
    if (options->alloc != nullptr || world.bytes.rarely(16)) options->free = release_memory;
  }
  MAKE(st_context_create, contexts, options);
  if (options == nullptr && world.contexts.made != nullptr)  // without a limit
    world.destroy("st_context_destroy", world.contexts, st_context_destroy, world.contexts.made);
}

void graph_op(World& world) {
  static const std::array<const char*, 24> kOps = {"add",        "mul",       "matmul",        "gelu",       "softmax", "mse",
                                                   "layer_norm", "sum",       "mean",          "split",      "concat",  "reshape",
                                                   "transpose",  "embedding", "cross_entropy", "slice",      "pad",     "host_op",
                                                   "cast",       "fill",      "where",         "no_such_op", "adamw",   "broadcast_to"};
  std::array<st_value, 4> inputs{}, made{};
  const int32_t n = world.bytes.next() % 4, m = 1 + world.bytes.next() % 3;
  for (st_value& input : inputs) input = value(world);
  const char* op = world.bytes.pick(kOps);
  st_graph* graph = world.handle(world.graphs);
  if (world.bytes.rarely(2)) {
    std::vector<st_attribute> attributes;
    static const std::array<const char*, 8> kNames = {"axis", "axes", "shape", "value", "epsilon", "approximate", "", nullptr};
    for (int i = 0, count = world.bytes.next() % 3; i < count; ++i)
      attributes.push_back({world.bytes.pick(kNames), world.bytes.next() % 7, world.bytes.next() % 5, world.number(), 0.5, world.dims(),
                            world.bytes.rarely(4) ? nullptr : world.name()});
    const auto count = static_cast<int32_t>(attributes.size());
    const st_status status = st_graph_apply(graph, op, n, inputs.data(), count, attributes.data(), m, made.data());
    return keep_value(world, "st_graph_apply", status, made[0]);
  }
  const int32_t stated = world.bytes.rarely(32) ? -1 : n;
  keep_value(world, "st_graph_op", st_graph_op(graph, op, stated, inputs.data(), json(world), m, made.data()), made[0]);
}

void graph_leaf(World& world) {
  st_value made = 0;
  st_graph* graph = world.handle(world.graphs);
  const char* name = world.name();
  const auto rank = static_cast<int32_t>(world.bytes.next() % 10) - (world.bytes.rarely(16) ? 2 : 0);
  const int64_t* dims = world.bytes.rarely(16) ? nullptr : world.dims();
  if (world.bytes.rarely(3))
    return keep_value(world, "st_graph_input", st_graph_input(graph, name, world.bytes.next() % 10, rank, dims, &made), made);
  if (world.bytes.rarely(3)) {
    const st_view view = world.view();
    return keep_value(world, "st_graph_parameter_values", st_graph_parameter_values(graph, name, &view, world.bytes.next() % 2, &made),
                      made);
  }
  keep_value(world, "st_graph_parameter", st_graph_parameter(graph, name, rank, dims, world.bytes.next() % 8 - 1, 0.1, &made), made);
}

void graph_layer(World& world) {
  static constexpr std::array kLayers = {st_layer_linear,    st_layer_embedding, st_layer_norm,
                                         st_layer_attention, st_layer_mlp,       st_layer_dropout};
  st_value made = 0;
  const auto layer = world.bytes.pick(kLayers);
  keep_value(world, "st_layer", layer(world.handle(world.graphs), world.name(), value(world), json(world), &made), made);
}

void graph_rest(World& world) {
  st_graph* graph = world.handle(world.graphs);
  const char* text = nullptr;
  switch (world.bytes.next() % 7) {
    case 0:
      CALL(st_graph_scope, graph, world.name());
      break;
    case 1:
      CALL(st_graph_scope_end, graph);
      break;
    case 2:
      CALL(st_graph_output, graph, world.name(), value(world));
      break;
    case 3:
      CALL(st_graph_loss, graph, value(world));
      break;
    case 4:
      CALL(st_graph_text, graph, world.bytes.rarely() ? nullptr : &text);
      break;
    case 5:
      CALL(st_graph_value, graph, value(world), filled(world, st_value_info_init));
      break;
    default:
      if (world.graphs.live.size() < 6) MAKE(st_graph_create, graphs, world.handle(world.contexts));
  }
}

void op_register(World& world) {
  auto* callbacks = filled(world, st_op_callbacks_init);
  if (callbacks != nullptr) {
    callbacks->shape = world.bytes.rarely() ? nullptr : op_shape;
    callbacks->forward = world.bytes.rarely() ? nullptr : op_forward;
    callbacks->backward = world.bytes.rarely(4) ? nullptr : op_backward;
    if (world.bytes.rarely()) callbacks->outputs = static_cast<int32_t>(world.bytes.next()) - 2;
  }
  elsewhere().op_behaviour = world.bytes.next();
  CALL(st_op_register, world.handle(world.contexts), world.bytes.rarely(3) ? world.name() : "host_op", callbacks, nullptr);
}

void model_create(World& world) {
  static const std::array<const char*, 6> kKinds = {"mlp", "gpt", "mlp", "resnet", "", nullptr};
  static const std::array<const char*, 8> kJson = {R"({"inputs":1,"hidden":[4],"outputs":1})",
                                                   R"({"layers":1,"width":8,"heads":2,"context":4,"vocabulary":256})",
                                                   R"({"inputs":0})",
                                                   R"({"width":7,"heads":2})",
                                                   R"({"layers":-1})",
                                                   R"({"width":1000000000000})",
                                                   R"({"hidden":[9223372036854775807]})",
                                                   "{"};
  if (world.models.live.size() > 5) return;
  if (world.bytes.rarely(2)) return MAKE(st_model_create, models, world.handle(world.graphs), world.number());
  if (world.bytes.rarely(2)) return MAKE(st_model_clone, models, world.handle(world.models));
  MAKE(st_model_builtin, models, world.handle(world.contexts), world.bytes.pick(kKinds), world.bytes.pick(kJson), world.number());
}

void model_use(World& world) {
  st_model* model = world.handle(world.models);
  int64_t count = 0;
  const char* text = nullptr;
  const st_view view = world.view();
  Caller caller{world, static_cast<int64_t>(world.bytes.next() % 8) - 4};
  switch (world.bytes.next() % 10) {
    case 0:
      CALL(st_model_parameter_count, model, world.bytes.rarely() ? nullptr : &count);
      break;
    case 1:
      CALL(st_model_parameter, model, world.number(), filled(world, st_parameter_info_init));
      break;
    case 2:
      CALL(st_model_blend, model, world.handle(world.models), world.bytes.rarely(4) ? 1e300 : 0.5);
      break;
    case 3:
      CALL(st_model_digest, model, world.bytes.rarely() ? nullptr : &text);
      break;
    case 4:
      CALL(st_model_get, model, world.name(), world.bytes.rarely(16) ? nullptr : &view);
      break;
    case 5:
      CALL(st_model_set, model, world.name(), world.bytes.rarely(16) ? nullptr : &view);
      break;
    case 6:
      CALL(st_model_write_file, model, path(world, "write").c_str());
      break;
    case 7:
      CALL(st_model_read_file, model, path(world, "write").c_str());
      break;
    case 8:
      CALL(st_model_write, model, world.bytes.rarely(16) ? nullptr : write_bytes, &caller);
      break;
    default: {
      auto* options = filled(world, st_read_options_init);
      const st_rename renames[] = {{world.name(), world.name()}, {"*", "a.*"}};
      if (options != nullptr && options->struct_size >= sizeof *options) {
        options->partial = world.bytes.next() % 2;
        options->rename_count = world.bytes.rarely(4) ? -1 : world.bytes.next() % 3;
        options->renames = world.bytes.rarely() ? nullptr : renames;
      }
      CALL(st_model_read, model, world.bytes.rarely(16) ? nullptr : read_bytes, &caller, options, filled(world, st_read_report_init));
    }
  }
}

void released(void* user) { ++static_cast<World*>(user)->released; }

void data_create(World& world) {
  if (world.data.live.size() > 5) return;
  st_context* context = world.handle(world.contexts);
  switch (world.bytes.next() % 3) {
    case 0:
      return MAKE(st_data_files, data, context, path(world, "read").c_str(), json(world));
    case 1: {
      const std::vector<st_named_view> arrays = world.bytes.rarely(4) ? world.views("x") : world.batch(false);
      const int64_t rows =
          world.bytes.rarely(4) || arrays.empty() || arrays[0].view.dims == nullptr ? world.number() : arrays[0].view.dims[0];
      const size_t before = world.data.live.size();
      MAKE(st_data_arrays, data, context, rows, static_cast<int64_t>(arrays.size()), arrays.data(), released, &world);
      world.lent += static_cast<int64_t>(world.data.live.size() - before);
      return;
    }
    default: {
      const st_field fields[] = {{"x", ST_F32, 1, world.dims({1})},
                                 {"y", ST_F32, 1, world.bytes.rarely(4) ? world.dims() : world.dims({1})}};
      // Not 2^40 rows: an evaluation goes through all of them, which is right and takes days.
      static constexpr std::array<int64_t, 6> kRows = {16, 16, 1, 0, -1, 300};
      elsewhere().fill_behaviour = world.bytes.next();
      const size_t before = world.data.live.size();
      MAKE(st_data_callback, data, context, world.bytes.pick(kRows), world.bytes.rarely() ? world.number() % 3 : 2, fields,
           world.bytes.rarely(16) ? nullptr : fill_rows, released, &world);
      world.lent += static_cast<int64_t>(world.data.live.size() - before);
    }
  }
}

void data_use(World& world) {
  st_data* data = world.handle(world.data);
  int64_t count = 0;
  double loss = 0;
  switch (world.bytes.next() % 4) {
    case 0:
      CALL(st_data_rows, data, world.bytes.rarely() ? nullptr : &count);
      break;
    case 1:
      CALL(st_data_vocabulary, data, world.bytes.rarely() ? nullptr : &count);
      break;
    case 2:
      CALL(st_data_bigram_loss, data, world.handle(world.data), &loss);
      break;
    default: {
      if (world.data.live.size() > 5) return;
      static constexpr std::array<double, 6> kFractions = {0.5, 0.1, 0, 1, -1, 1e300};
      st_data *train = nullptr, *validation = nullptr;
      const st_status status = st_data_split(data, world.bytes.pick(kFractions), world.number(), &train, &validation);
      world.keep("st_data_split", world.data, status, train);
      world.keep("st_data_split", world.data, status, validation);
    }
  }
}

void recipe_use(World& world) {
  st_recipe* recipe = world.handle(world.recipes);
  const char* text = nullptr;
  switch (world.bytes.next() % 5) {
    case 0:
      CALL(st_recipe_set, recipe, key(world), setting(world));
      break;
    case 1:
      CALL(st_recipe_get, recipe, key(world), &text);
      break;
    case 2:
      CALL(st_recipe_json, recipe, world.bytes.rarely() ? nullptr : &text);
      break;
    case 3:
      CALL(st_recipe_keys, &text);
      break;
    default:
      if (world.recipes.live.size() < 4)
        MAKE(st_recipe_create, recipes, world.bytes.rarely(3) ? json(world) : R"({"batch": 2, "accumulate": 2, "warmup": 0})");
  }
}

void trainer_create(World& world) {
  if (world.trainers.live.size() > 3) return;
  st_data* data = world.bytes.rarely(2) ? world.handle(world.data) : nullptr;
  MAKE(st_trainer_create, trainers, world.handle(world.models), world.handle(world.recipes), data);
  if (!world.trainers.live.empty()) elsewhere().trainer = world.trainers.live.back();
}

void trainer_step(World& world) {
  st_trainer* trainer = world.handle(world.trainers);
  std::vector<st_named_view> batch;
  if (!world.bytes.rarely(3)) batch = world.batch(world.bytes.rarely(3));
  const auto n = world.bytes.rarely(32) ? world.number() % 2 : static_cast<int64_t>(batch.size());
  const st_named_view* views = batch.empty() || world.bytes.rarely(32) ? nullptr : batch.data();
  Caller caller{world, static_cast<int64_t>(world.bytes.next() % 4)};
  int32_t done = 0;
  int64_t m = 0;
  const st_named_view* outputs = nullptr;
  switch (world.bytes.next() % 7) {
    case 0:
    case 1:
      CALL(st_trainer_step, trainer, std::min<int64_t>(n, static_cast<int64_t>(batch.size())), views, filled(world, st_step_report_init));
      break;
    case 2:
      CALL(st_trainer_advance, trainer, n, views, world.number(), &done, filled(world, st_step_report_init));
      break;
    case 3:
      CALL(st_trainer_forward, trainer, n, views, &m, &outputs);
      break;
    case 4: {
      const std::vector<st_named_view> gradients = world.views("prediction");
      CALL(st_trainer_backward, trainer, static_cast<int64_t>(gradients.size()), gradients.empty() ? nullptr : gradients.data());
      break;
    }
    case 5:
      CALL(st_trainer_apply, trainer, filled(world, st_step_report_init));
      break;
    default:  // at most 3 steps more: on_step ends the run
      CALL(st_trainer_run, trainer, world.number(), on_step, &caller);
  }
}

void trainer_use(World& world) {
  st_trainer* trainer = world.handle(world.trainers);
  const char* text = nullptr;
  const st_view view = world.view();
  switch (world.bytes.next() % 13) {
    case 0:
      CALL(st_trainer_evaluate, trainer, world.handle(world.data), filled(world, st_evaluation_init));
      break;
    case 1:
      CALL(st_trainer_gradient, trainer, world.name(), world.bytes.rarely(16) ? nullptr : &view);
      break;
    case 2:
      CALL(st_trainer_set, trainer, key(world), setting(world));
      break;
    case 3:
      CALL(st_trainer_get, trainer, key(world), &text);
      break;
    case 4:
      CALL(st_trainer_stop, trainer);
      break;
    case 5:
      CALL(st_trainer_cancel, trainer);
      break;
    case 6:
      CALL(st_trainer_digest, trainer, world.bytes.rarely() ? nullptr : &text);
      break;
    case 7:
      CALL(st_trainer_plan, trainer, &text);
      break;
    case 8:
      CALL(st_trainer_explain, trainer, &text);
      break;
    case 9:
      CALL(st_trainer_log, trainer, path(world, "write").c_str());
      break;
    case 10:
      CALL(st_trainer_log_end, trainer, 1.0);
      break;
    case 11:
      CALL(st_trainer_write_report, trainer, path(world, "write").c_str(), json(world));
      break;
    default: {
      auto* info = filled(world, st_error_info_init);
      if (info != nullptr) st_last_error_info(info);
    }
  }
}

void predictor_use(World& world) {
  st_predictor* predictor = world.handle(world.predictors);
  switch (world.bytes.next() % 4) {
    case 0: {
      auto* options = filled(world, st_predictor_options_init);
      if (options != nullptr && options->struct_size >= sizeof *options) {
        options->shared = world.bytes.next() % 3;
        options->threads = world.bytes.rarely(4) ? -1 : world.bytes.next() % 3;
      }
      if (world.predictors.live.size() < 4) MAKE(st_predictor_create, predictors, world.handle(world.models), options);
      break;
    }
    case 1: {
      const std::vector<st_named_view> inputs = world.batch(world.bytes.rarely(3));
      std::vector<st_named_view> outputs = world.views("prediction");
      if (world.bytes.rarely(2)) outputs = {{"prediction", inputs[0].view}};  // the input's own memory
      CALL(st_predictor_run, predictor, static_cast<int64_t>(inputs.size()), inputs.data(), static_cast<int64_t>(outputs.size()),
           outputs.empty() ? nullptr : outputs.data());
      break;
    }
    case 2:
      CALL(st_predictor_refresh, predictor);
      break;
    default: {
      Caller caller{world, static_cast<int64_t>(world.bytes.next() % 4)};
      auto* options = filled(world, st_generate_options_init);
      if (options != nullptr && options->struct_size >= sizeof *options) options->tokens = world.number();
      const int32_t tokens[4] = {1, 2, static_cast<int32_t>(world.number()), 3};
      CALL(st_predictor_generate, predictor, world.bytes.rarely(8) ? -1 : world.bytes.next() % 5, tokens, options, on_token, &caller);
    }
  }
}

void tensor_use(World& world) {
  if (world.tensors.live.size() > 5)
    return world.destroy("st_tensor_destroy", world.tensors, st_tensor_destroy, world.handle(world.tensors));
  st_context* context = world.handle(world.contexts);
  st_view view = world.view();
  switch (world.bytes.next() % 4) {
    case 0:
      return MAKE(st_tensor_create, tensors, context, view.dtype, view.rank, view.dims);
    case 1: {
      const size_t before = world.tensors.live.size();
      MAKE(st_tensor_wrap, tensors, context, world.bytes.rarely(16) ? nullptr : &view, released, &world);
      world.lent += static_cast<int64_t>(world.tensors.live.size() - before);
      return;
    }
    case 2:
      CALL(st_tensor_view, world.handle(world.tensors), world.bytes.rarely() ? nullptr : &view);
      return;
    default: {
      // Out and in again: whoever takes the tensor over calls its deleter.
      DLManagedTensor* managed = nullptr;
      if (CALL(st_tensor_to_dlpack, world.handle(world.tensors), &managed)) {
        const size_t before = world.tensors.live.size();
        st_context* owner = world.contexts.live.empty() ? nullptr : world.contexts.live.front();
        MAKE(st_tensor_from_dlpack, tensors, owner, managed);
        if (world.tensors.live.size() == before) {
          // DLManagedTensor, version 0: a tensor of 48 bytes, the maker's pointer, the deleter.
          void (*deleter)(DLManagedTensor*) = nullptr;
          std::memcpy(&deleter, reinterpret_cast<const char*>(managed) + 56, sizeof deleter);
          if (deleter != nullptr) deleter(managed);
        }
      }
    }
  }
}

void context_use(World& world) {
  st_context* context = world.handle(world.contexts);
  const char* text = nullptr;
  int64_t count = 0;
  switch (world.bytes.next() % 8) {
    case 0:
      CALL(st_context_cancel, context);
      break;
    case 1:
      CALL(st_context_trim, context);
      break;
    case 2:
      CALL(st_context_memory, context, filled(world, st_memory_stats_init));
      break;
    case 3:
      CALL(st_live_handles, world.name(), &count);
      break;
    case 4:
      CALL(st_require, static_cast<int32_t>(world.number()), 1);
      break;
    case 5:
      CALL(st_version, world.bytes.rarely() ? nullptr : &text);
      break;
    case 6:
      elsewhere().alloc_failures = world.bytes.next();
      break;
    default:
      context_create(world);
  }
}

void destroy_something(World& world) {
  switch (world.bytes.next() % 8) {
    case 0:
      return world.destroy("st_context_destroy", world.contexts, st_context_destroy, world.handle(world.contexts));
    case 1:
      return world.destroy("st_graph_destroy", world.graphs, st_graph_destroy, world.handle(world.graphs));
    case 2:
      return world.destroy("st_model_destroy", world.models, st_model_destroy, world.handle(world.models));
    case 3:
      return world.destroy("st_data_destroy", world.data, st_data_destroy, world.handle(world.data));
    case 4:
      return world.destroy("st_recipe_destroy", world.recipes, st_recipe_destroy, world.handle(world.recipes));
    case 5:
      return world.destroy("st_trainer_destroy", world.trainers, st_trainer_destroy, world.handle(world.trainers));
    case 6:
      return world.destroy("st_predictor_destroy", world.predictors, st_predictor_destroy, world.handle(world.predictors));
    default:
      return world.destroy("st_tensor_destroy", world.tensors, st_tensor_destroy, world.handle(world.tensors));
  }
}

st_value linear(st_graph* graph, const char* name, st_value x, const int64_t* dims) {
  st_value w = 0, b = 0, y = 0;
  st_graph_scope(graph, name);
  st_graph_parameter(graph, "weight", 2, dims, ST_INIT_XAVIER, 1, &w);
  st_graph_parameter(graph, "bias", 1, dims + 1, ST_INIT_ZEROS, 0, &b);
  const st_value product[] = {x, w};
  st_graph_op(graph, "matmul", 2, product, nullptr, 1, &y);
  const st_value sum[] = {y, b};
  st_graph_op(graph, "add", 2, sum, nullptr, 1, &y);
  st_graph_scope_end(graph);
  return y;
}

void sine_graph(World& world, st_graph* graph) {
  st_value x = 0, y = 0, loss[2] = {0, 0};
  const int64_t* column = world.dims({ST_BATCH, 1});
  st_graph_input(graph, "x", ST_F32, 2, column, &x);
  st_graph_input(graph, "y", ST_F32, 2, column, &y);
  st_value hidden = linear(graph, "first", x, world.dims({1, 4}));
  st_graph_op(graph, "gelu", 1, &hidden, nullptr, 1, &hidden);
  const st_value pair[] = {linear(graph, "second", hidden, world.dims({4, 1})), y};
  st_graph_op(graph, "mse", 2, pair, nullptr, 2, loss);
  st_graph_output(graph, "prediction", pair[0]);
  st_graph_loss(graph, loss[0]);
  for (const st_value made : {x, y, hidden, pair[0], loss[0]}) world.values.push_back(made);
}

}  // namespace

void set_up(World& world) {
  elsewhere().fill_behaviour = elsewhere().op_behaviour = elsewhere().alloc_failures = 0;
  elsewhere().trainer = nullptr;
  context_create(world);
  if (world.contexts.live.empty()) {  // its options were wrong
    st_context_options options{};
    CALL(st_context_options_init, &options, sizeof options);
    options.threads = 1;
    options.memory_limit = 1 << 24;
    MAKE(st_context_create, contexts, &options);
  }
  if (world.contexts.live.empty()) return;
  st_context* context = world.contexts.live[0];
  elsewhere().context = context;
  if (world.bytes.rarely(3)) op_register(world);
  MAKE(st_graph_create, graphs, context);
  if (world.graphs.live.empty()) return;
  sine_graph(world, world.graphs.live[0]);
  MAKE(st_model_create, models, world.graphs.live[0], 1);
  MAKE(st_recipe_create, recipes, R"({"batch": 4, "accumulate": 2, "warmup": 0})");
  if (world.bytes.rarely(3))
    MAKE(st_model_builtin, models, context, "gpt", R"({"layers":1,"width":8,"heads":2,"context":4,"vocabulary":256})", 1);
  if (world.bytes.rarely(2)) data_create(world);
  if (world.models.live.empty() || world.recipes.live.empty()) return;
  MAKE(st_trainer_create, trainers, world.models.live[0], world.recipes.live[0], nullptr);
  MAKE(st_predictor_create, predictors, world.bytes.pick(world.models.live), nullptr);
}

void call_something(World& world) {
  // What trains comes more often: most of the state is there.
  static constexpr std::array kCalls = {context_use,    graph_op,      graph_leaf,    graph_layer,  graph_rest,       op_register,
                                        model_create,   model_use,     model_use,     data_create,  data_use,         recipe_use,
                                        trainer_create, trainer_step,  trainer_step,  trainer_step, trainer_step,     trainer_use,
                                        trainer_use,    predictor_use, predictor_use, tensor_use,   destroy_something};
  world.bytes.pick(kCalls)(world);
}

}  // namespace st::fuzz
