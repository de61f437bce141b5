#include "model/model.h"

#include <algorithm>
#include <optional>

#include "base/callback_reason.h"
#include "context_object.h"
#include "graph_object.h"
#include "group_call.h"
#include "guard.h"
#include "local_call.h"
#include "model_object.h"
#include "models/builtin.h"
#include "pending_object.h"
#include "read_options.h"
#include "views.h"

using namespace st;
using namespace st::capi;

namespace {

std::shared_ptr<ModelObject> make_model(const std::shared_ptr<Context>& context, Program program, int64_t seed) {
  const FloatMode mode;  // the host's rounding must not affect the initial weights
  auto object = std::make_shared<ModelObject>();
  object->model = std::make_shared<Model>(context, std::move(program), static_cast<uint64_t>(seed));
  return object;
}

SlotId parameter_named(const ModelObject& object, const char* name, const char* call) {
  return object.model->parameter_named(text_given(name, call, "name"));
}

/// Wraps the host's callback; checks its results.
ReadBytes read_through(st_read_fn read, void* user) {
  return [read, user](std::span<std::byte> room) {
    int64_t count = -1;
    const st_status status = ask_host(read, user, room.data(), std::ssize(room), &count);
    if (status != ST_OK) fail(Code::callback, text("st_model_read: read returned ", text_of_answer(status), "; nothing was changed"));
    require(count >= 0 && count <= static_cast<int64_t>(room.size()), Code::callback, "st_model_read: read was given room for ",
            room.size(), " bytes but reported ", count, "; nothing was changed");
    return static_cast<size_t>(count);
  };
}

void keep_report(ModelObject& object, ReadReport made) {
  object.read = std::move(made);
  const auto texts = [](const std::vector<std::string>& names, std::vector<const char*>& out) {
    out.clear();
    for (const std::string& name : names) out.push_back(name.c_str());
  };
  texts(object.read.missing, object.missing);
  texts(object.read.unexpected, object.unexpected);
}

void give_report(st_read_report* theirs, const ModelObject& object, const char* call) {
  if (theirs == nullptr) return;
  st_read_report ours{};
  ours.read = object.read.read;
  ours.missing_count = static_cast<int64_t>(object.missing.size());
  ours.unexpected_count = static_cast<int64_t>(object.unexpected.size());
  ours.missing = object.missing.data();
  ours.unexpected = object.unexpected.data();
  give(theirs, ours, text(call, ": report").c_str());
}

/// Calls read(model, options, report) and gives the host its report, also if the read throws.
template <class Read>
void read_and_report(st_model* model, const st_read_options* options, st_read_report* report, const char* call, const Read& read) {
  if (report != nullptr) take(report, text(call, ": report").c_str());
  const ReadOptions ours = read_options(options, call);
  const auto object = find(model);
  ReadReport made;
  const auto give_made = [&] {
    keep_report(*object, std::move(made));
    give_report(report, *object, call);
  };
  try {
    read(*object->model, ours, made);
  } catch (...) {
    give_made();
    throw;
  }
  give_made();
}

constexpr const char* kAll = "the parameters";

/// Makes a call that reads parameters: on the ranks over which the model is sharded, or on this rank alone.
template <class Call>
void make_on(const ModelObject& object, Reach reach, const char* call, const Call& make) {
  make_collectively(reach == Reach::collective ? sharding_group_of(object, call) : nullptr, make);
}

// The calls that come in pairs; `call` is the function that the host has called.

st_status clone(st_model* model, st_model** clone, Reach reach, const char* call = __builtin_FUNCTION()) {
  const auto body = [&] {
    const auto object = find(model);
    std::shared_ptr<ModelObject> made;
    make_on(*object, reach, call, [&](ShardedModelCall* collective) {
      given(clone, call, "clone");
      if (reach == Reach::local) require_local(*object, call, kAll);
      made = std::make_shared<ModelObject>();
      made->model = object->model->clone(collective);
    });
    hand_out(clone, std::move(made));
  };
  return guard(body, call);
}

st_status digest(st_model* model, const char** hex, Reach reach, const char* call = __builtin_FUNCTION()) {
  const auto body = [&] {
    const auto object = find(model);
    make_on(*object, reach, call, [&](ShardedModelCall* collective) {
      given(hex, call, "hex");
      if (reach == Reach::local) require_local(*object, call, kAll);
      object->answer = object->model->digest(collective);
    });
    *hex = object->answer.c_str();
  };
  return guard(body, call);
}

st_status get(st_model* model, const char* name, const st_view* to, Reach reach, const char* call = __builtin_FUNCTION()) {
  const auto body = [&] {
    const auto object = find(model);  // BUSY while a step is changing the weights
    make_on(*object, reach, call, [&](ShardedModelCall* collective) {
      const SlotId id = parameter_named(*object, name, call);
      if (reach == Reach::local && !object->model->has_all_of(id)) require_local(*object, call, text('"', name, '"'));
      const Model& from = *object->model;
      about_tensor(name, [&] { from.get(id, written_view(from.slot(id).name, to, call, &from.context()), collective); });
    });
  };
  return guard(body, call);
}

st_status write_file(st_model* model, const char* path, st_pending** pending, Reach reach, const char* call = __builtin_FUNCTION()) {
  const auto body = [&] {
    const auto object = find(model);
    std::string file;
    std::shared_ptr<Model> copy;
    std::shared_ptr<PendingObject> made;
    make_on(*object, reach, call, [&](ShardedModelCall* collective) {
      const bool writes = collective == nullptr || collective->ranks().rank() == 0;
      if (writes) {
        file = text_given(path, call, "path");
        check(!file.empty(), call, ": path is empty; name the file to write");
      }
      if (reach == Reach::local) require_local(*object, call, kAll);
      if (pending == nullptr) return object->model->write(file, collective);
      made = std::make_shared<PendingObject>();
      copy = object->model->clone(collective, writes);
    });
    if (pending == nullptr) return;
    made->work = std::make_shared<Pending>([copy, file] {
      if (copy) copy->write(file);
    });
    hand_out(pending, std::move(made));
  };
  return guard(body, call);
}

st_status write(st_model* model, st_write_fn write, void* user, Reach reach, const char* call = __builtin_FUNCTION()) {
  const auto body = [&] {
    const auto object = find(model);
    const auto give = [&](std::span<const std::byte> bytes) {
      const st_status status = ask_host(write, user, bytes.data(), std::ssize(bytes));
      if (status != ST_OK) fail(Code::callback, text(call, ": write returned ", text_of_answer(status), "; the stream is incomplete"));
    };
    make_on(*object, reach, call, [&](ShardedModelCall* collective) {
      check(write != nullptr, call, ": write is NULL");
      if (reach == Reach::local) require_local(*object, call, kAll);
      object->model->write(give, collective);
    });
  };
  return guard(body, call);
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
    if (name == nullptr) fail(Code::invalid_argument, "st_model_builtin: name is NULL; use one of " + listed(builtin_models()));
    const std::string options = json == nullptr ? "" : json;
    const auto c = peek(context)->context;
    hand_out(model, make_model(c, build_builtin(name, options), seed));
    std::string rest;
    for (const std::string& key : keys_not_taken(name, options)) rest += (rest.empty() ? "" : ", ") + key;
    if (!rest.empty()) c->options().log.info("model", "config.json: not taken: ", rest);
  });
}

st_status st_model_destroy(st_model* model) { return drop(model); }

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

st_status st_model_clone(st_model* model, st_model** copy) { return clone(model, copy, Reach::local); }
st_status st_model_clone_collective(st_model* model, st_model** copy) { return clone(model, copy, Reach::collective); }

st_status st_model_blend(st_model* to, st_model* from, double t) {
  return guard([&] {
    const auto target = peek(to), source = peek(from);
    // Leases never wait, so no order can deadlock. With a fixed order, one of two crossing calls succeeds.
    const auto& [first, second] = std::minmax(target, source);
    const Lease lease(Kind::model, first);
    std::optional<Lease<ModelObject>> other;
    if (first != second) other.emplace(Kind::model, second);
    target->model->blend(*source->model, t);
  });
}

st_status st_model_digest(st_model* model, const char** hex) { return digest(model, hex, Reach::local); }
st_status st_model_digest_collective(st_model* model, const char** hex) { return digest(model, hex, Reach::collective); }

st_status st_model_get(st_model* model, const char* name, const st_view* to) { return get(model, name, to, Reach::local); }
st_status st_model_get_collective(st_model* model, const char* name, const st_view* to) { return get(model, name, to, Reach::collective); }

st_status st_model_set(st_model* model, const char* name, const st_view* from) {
  return guard([&] {
    const auto object = find(model);  // BUSY while a step is changing the weights
    const SlotId id = parameter_named(*object, name, "st_model_set");
    const HostView view = read_view(object->model->slot(id).name, from, "st_model_set", &object->model->context());
    require_nested(view, "st_model_set");
    about_tensor(name, [&] { object->model->set(id, view); });
  });
}

st_status st_model_write_file(st_model* model, const char* path, st_pending** pending) {
  return write_file(model, path, pending, Reach::local);
}
st_status st_model_write_file_collective(st_model* model, const char* path, st_pending** pending) {
  return write_file(model, path, pending, Reach::collective);
}

st_status st_model_read_file(st_model* model, const char* path, const st_read_options* options, st_read_report* report) {
  return guard([&] {
    constexpr const char* kCall = "st_model_read_file";
    read_and_report(model, options, report, kCall, [&](Model& into, const ReadOptions& ours, ReadReport& made) {
      const std::string file = text_given(path, "st_model_read_file: path");
      check(!file.empty(), kCall, ": path is empty; name a safetensors file, a folder that has one, or the index of its shards");
      into.read(file, ours, made);
    });
  });
}

st_status st_model_write(st_model* model, st_write_fn take, void* user) { return write(model, take, user, Reach::local); }
st_status st_model_write_collective(st_model* model, st_write_fn take, void* user) { return write(model, take, user, Reach::collective); }

st_status st_read_options_init(st_read_options* options, size_t size) { return init(options, size, st_read_options{}); }

st_status st_read_report_init(st_read_report* report, size_t size) { return init(report, size, st_read_report{}); }

st_status st_model_read(st_model* model, st_read_fn read, void* user, const st_read_options* options, st_read_report* report) {
  return guard([&] {
    check(read != nullptr, "st_model_read: read is NULL");
    read_and_report(model, options, report, "st_model_read",
                    [&](Model& into, const ReadOptions& ours, ReadReport& made) { into.read(read_through(read, user), ours, made); });
  });
}
