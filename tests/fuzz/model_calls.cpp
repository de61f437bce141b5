// Models: created, read, written, blended.
#include "api_calls.h"

#include "call_arguments.h"
#include "host_callbacks.h"

namespace st::fuzz {
namespace {

struct DrawnReadOptions {
  explicit DrawnReadOptions(World& world) : renames{{world.name(), world.name()}, {"*", "a.*"}}, options(FILLED(st_read_options_init)) {
    if (options == nullptr || options->struct_size < sizeof *options) return;
    options->partial = world.bytes.next() % 2;
    options->rename_count = world.bytes.rarely(4) ? -1 : world.bytes.next() % 3;
    options->renames = world.bytes.rarely() ? nullptr : renames;
  }
  const st_rename renames[2];
  st_read_options* const options;
};

}  // namespace

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
  if (world.bytes.rarely(16)) return MAKE(st_model_clone_collective, models, world.handle(world.models));
  MAKE(st_model_builtin, models, world.handle(world.contexts), world.bytes.pick(kKinds), world.bytes.pick(kJson), world.number());
}

void model_use(World& world) {
  st_model* model = world.handle(world.models);
  int64_t count = 0;
  const char* text = nullptr;
  const bool known = world.bytes.rarely(2);
  const char* name = known ? "first.weight" : world.name();
  const st_view view = known ? world.view_of({1, 4}) : world.view();
  Caller caller{world, static_cast<int64_t>(world.bytes.next() % 8) - 4};
  const Calls calls = {
      [&] { CALL(st_model_parameter_count, model, world.bytes.rarely() ? nullptr : &count); },
      [&] { CALL(st_model_parameter, model, world.number(), FILLED(st_parameter_info_init)); },
      [&] { CALL(st_model_blend, model, world.handle(world.models), world.bytes.rarely(4) ? 1e300 : 0.5); },
      [&] { CALL(st_model_digest, model, world.bytes.rarely() ? nullptr : &text); },
      [&] { CALL(st_model_get, model, name, world.bytes.rarely(16) ? nullptr : &view); },
      [&] { CALL(st_model_set, model, name, world.bytes.rarely(16) ? nullptr : &view); },
      [&] { PEND(st_model_write_file, model, path(world, "write").c_str()); },
      [&] {
        world.stream.clear();
        CALL(st_model_write, model, world.bytes.rarely(16) ? nullptr : write_bytes, &caller);
      },
      [&] {
        const DrawnReadOptions drawn(world);
        caller.replay = world.bytes.rarely(2) ? 0 : -1;
        CALL(st_model_read, model, world.bytes.rarely(16) ? nullptr : read_bytes, &caller, drawn.options, FILLED(st_read_report_init));
      },
      [&] {
        const DrawnReadOptions drawn(world);
        CALL(st_model_read_file, model, path(world, "write").c_str(), world.bytes.rarely(2) ? nullptr : drawn.options,
             FILLED(st_read_report_init));
      },
      [&] {
        CALL(st_model_digest_collective, model, world.bytes.rarely() ? nullptr : &text);
        CALL(st_model_get_collective, model, name, world.bytes.rarely(16) ? nullptr : &view);
      },
      [&] {
        PEND(st_model_write_file_collective, model, path(world, "write").c_str());
        CALL(st_model_write_collective, model, world.bytes.rarely(16) ? nullptr : write_bytes, &caller);
      },
      [&] { CALL(st_weights_inspect, path(world, "write").c_str(), world.bytes.rarely() ? nullptr : &text); },
  };
  world.bytes.choose(14, calls);
}

void pending_use(World& world) {
  int32_t done = 0;
  const Calls calls = {
      [&] { DESTROY(st_pending_destroy, pendings); },
      [&] { CALL(st_pending_poll, world.handle(world.pendings), world.bytes.rarely() ? nullptr : &done); },
      [&] { CALL(st_pending_wait, world.handle(world.pendings), world.bytes.rarely(2) ? -1 : world.bytes.next() % 4); },
  };
  world.bytes.choose(4, calls);
}

}  // namespace st::fuzz
