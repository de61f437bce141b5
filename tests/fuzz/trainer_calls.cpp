// Trainers: steps as one call and in parts, and all other calls.
#include "api_calls.h"

#include <algorithm>
#include <vector>

#include "call_arguments.h"
#include "host_callbacks.h"

namespace st::fuzz {
void trainer_create(World& world) {
  if (world.trainers.live.size() > 3) return;
  st_data* data = world.bytes.rarely(2) ? world.handle(world.data) : nullptr;
  if (world.bytes.rarely(4))
    MAKE(st_trainer_create_in_group, trainers, world.handle(world.models), world.handle(world.recipes), data,
         world.handle(world.communicators));
  else
    MAKE(st_trainer_create, trainers, world.handle(world.models), world.handle(world.recipes), data);
  if (!world.trainers.live.empty()) elsewhere().trainer = world.trainers.live.back();
}

namespace {

/// Reads all outputs of forward, which must stay valid until the handle's next call.
void read_all(int64_t m, const st_named_view* outputs) {
  unsigned sum = 0;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t at = 0; at < outputs[i].view.bytes; ++at) sum += static_cast<const unsigned char*>(outputs[i].view.data)[at];
  static std::atomic<unsigned> seen;
  seen = sum;
}

/// A step by the host in the right order, unless the input breaks it off.
void step_in_parts(World& world, st_trainer* trainer) {
  const int64_t* dims = world.dims({4, 1});
  const st_named_view batch[] = {{"x", world.view_of({4, 1})}, {"y", world.view_of({4, 1})}};
  const st_named_view gradient = {"prediction", {ST_F32, 2, dims, nullptr, world.view_of({4, 1}).data, 16}};
  for (int i = 0; i < 2 && !world.bytes.rarely(); ++i) {
    int64_t m = 0;
    const st_named_view* outputs = nullptr;
    const st_named_view prediction = {"prediction", world.view_of({4, 1})};
    if (world.bytes.rarely(2))
      CALL(st_trainer_forward_into, trainer, 2, batch, world.bytes.rarely(3) ? 0 : 1, &prediction);
    else if (CALL(st_trainer_forward, trainer, 2, batch, &m, &outputs))
      read_all(m, outputs);
    if (world.bytes.rarely()) return;
    const bool own_loss = world.bytes.rarely(2);
    CALL(st_trainer_backward, trainer, own_loss ? 0 : 1, own_loss ? nullptr : &gradient);
  }
  CALL(st_trainer_apply, trainer, FILLED(st_step_report_init));
}

}  // namespace

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
  switch (world.bytes.next() % 8) {
    case 0:
    case 1:
      CALL(st_trainer_step, trainer, std::min<int64_t>(n, static_cast<int64_t>(batch.size())), views, FILLED(st_step_report_init));
      break;
    case 2:
      CALL(st_trainer_advance, trainer, n, views, world.number(), &done, FILLED(st_step_report_init));
      break;
    case 3:
      if (world.bytes.rarely(2)) {
        const std::vector<st_named_view> predictions = world.views("prediction");
        CALL(st_trainer_forward_into, trainer, n, views, static_cast<int64_t>(predictions.size()),
             predictions.empty() ? nullptr : predictions.data());
        break;
      }
      if (CALL(st_trainer_forward, trainer, n, views, &m, &outputs)) read_all(m, outputs);
      break;
    case 4: {
      const std::vector<st_named_view> gradients = world.views("prediction");
      CALL(st_trainer_backward, trainer, static_cast<int64_t>(gradients.size()), gradients.empty() ? nullptr : gradients.data());
      break;
    }
    case 5:
      CALL(st_trainer_apply, trainer, FILLED(st_step_report_init));
      break;
    case 6:
      return step_in_parts(world, trainer);
    default:  // at most 3 more steps: on_step ends the run
      CALL(st_trainer_run, trainer, world.number(), on_step, &caller);
  }
}

void trainer_use(World& world) {
  st_trainer* trainer = world.handle(world.trainers);
  const char* text = nullptr;
  const bool known = world.bytes.rarely(2);
  const st_view view = known ? world.view_of({1, 4}) : world.view();
  const Calls calls = {
      [&] { CALL(st_trainer_evaluate, trainer, world.handle(world.data), FILLED(st_evaluation_init)); },
      [&] { CALL(st_trainer_gradient, trainer, known ? "first.weight" : world.name(), world.bytes.rarely(16) ? nullptr : &view); },
      [&] { CALL(st_trainer_set, trainer, key(world), setting(world)); },
      [&] { CALL(st_trainer_get, trainer, key(world), &text); },
      [&] { CALL(st_trainer_stop, trainer); },
      [&] { CALL(st_trainer_cancel, trainer); },
      [&] { CALL(st_trainer_digest, trainer, world.bytes.rarely() ? nullptr : &text); },
      [&] { CALL(st_trainer_plan, trainer, &text); },
      [&] {
        CALL(st_trainer_explain, trainer, &text);
        CALL(st_trainer_timeline, trainer, &text);
        CALL(st_trainer_forecast, trainer, world.bytes.rarely(4) ? json(world) : nullptr, &text);
      },
      [&] { CALL(st_trainer_log, trainer, path(world, "write").c_str()); },
      [&] { CALL(st_trainer_log_end, trainer, 1.0); },
      [&] {
        elsewhere().rate_behaviour = world.bytes.next();
        const bool lends = world.bytes.rarely(2);
        if (CALL(st_trainer_set_schedule, trainer, lends ? learning_rate : nullptr, released, &world) && lends) ++world.lent;
      },
      [&] { CALL(st_trainer_evaluate_average, trainer, world.handle(world.data), FILLED(st_evaluation_init)); },
      [&] { CALL(st_trainer_average, trainer, known ? "first.weight" : world.name(), world.bytes.rarely(16) ? nullptr : &view); },
      [&] { CALL(st_trainer_use_average, trainer); },
      [&] {
        CALL(st_trainer_evaluate_collective, trainer, world.handle(world.data), FILLED(st_evaluation_init));
        CALL(st_trainer_evaluate_average_collective, trainer, world.handle(world.data), FILLED(st_evaluation_init));
      },
      [&] {
        CALL(st_trainer_gradient_collective, trainer, known ? "first.weight" : world.name(), world.bytes.rarely(16) ? nullptr : &view);
        CALL(st_trainer_average_collective, trainer, known ? "first.weight" : world.name(), world.bytes.rarely(16) ? nullptr : &view);
        CALL(st_trainer_digest_collective, trainer, world.bytes.rarely() ? nullptr : &text);
      },
      [&] { CALL(st_trainer_write_report, trainer, path(world, "write").c_str(), json(world)); },
  };
  world.bytes.choose(18, calls);
}

}  // namespace st::fuzz
