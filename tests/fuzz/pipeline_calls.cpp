// Pipelines on ranks driven by this one thread: groups of one, and of two whose other end does not join.
#include "api_calls.h"
#include "call_arguments.h"

namespace st::fuzz {
namespace {

st_status compute(void*, const st_stage_work* work) { return work->micro_batch == 5 ? ST_IO : ST_OK; }

}  // namespace

void pipeline_use(World& world) {
  if (world.communicators.live.empty()) return communicator_use(world);
  if (world.pipelines.live.size() < 2) {
    constexpr const char* kSchedules[] = {"gpipe",           "1f1b",    "interleaved", "zb-h1", "zb-v",
                                          "0F0,0F1,0B0,0B1", "0F0,0B1", "1F0,",        "",      nullptr};
    st_pipeline_callbacks callbacks;
    CALL(st_pipeline_callbacks_init, &callbacks, sizeof callbacks);
    callbacks.forward = callbacks.backward_input = compute;
    if (world.bytes.rarely()) callbacks.backward_input = nullptr;
    const auto type = [&] {
      return st_op_type{world.bytes.rarely(8) ? world.bytes.next() % 12 : ST_F32, 1 + world.bytes.next() % 2, {3, 4}};
    };
    const st_op_type inputs[] = {type(), type(), type()}, outputs[] = {type(), type(), type()};
    MAKE(st_pipeline_create, pipelines, world.handle(world.communicators), kSchedules[world.bytes.next() % std::size(kSchedules)],
         world.bytes.next() % 4, inputs, outputs, world.bytes.rarely() ? nullptr : &callbacks, nullptr);
  }
  st_pipeline* pipeline = world.handle(world.pipelines);
  const char* json = nullptr;
  const Calls calls = {
      [&] { CALL(st_pipeline_run, pipeline, world.bytes.next() % 9); },
      [&] {
        CALL(st_pipeline_schedule, pipeline, world.bytes.rarely(8) ? static_cast<int32_t>(world.number()) : world.bytes.next() % 9, &json);
      },
  };
  world.bytes.choose(4, calls);
}

}  // namespace st::fuzz
