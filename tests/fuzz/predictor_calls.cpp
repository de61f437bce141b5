// Predictors: runs and generation.
#include "api_calls.h"

#include <vector>

#include "call_arguments.h"
#include "host_callbacks.h"

namespace st::fuzz {
void predictor_use(World& world) {
  st_predictor* predictor = world.handle(world.predictors);
  const Calls calls = {
      [&] {
        auto* options = FILLED(st_predictor_options_init);
        if (options != nullptr && options->struct_size >= sizeof *options) {
          options->shared = world.bytes.next() % 3;
          options->threads = world.bytes.rarely(4) ? -1 : world.bytes.next() % 3;
        }
        if (world.predictors.live.size() < 4) MAKE(st_predictor_create, predictors, world.handle(world.models), options);
        if (world.predictors.live.size() < 4) MAKE(st_predictor_create_collective, predictors, world.handle(world.models), options);
      },
      [&] {
        const std::vector<st_named_view> inputs = world.batch(world.bytes.rarely(3));
        std::vector<st_named_view> outputs = world.views("prediction");
        if (world.bytes.rarely(2)) outputs = {{"prediction", inputs[0].view}};  // the input's own memory
        CALL(st_predictor_run, predictor, static_cast<int64_t>(inputs.size()), inputs.data(), static_cast<int64_t>(outputs.size()),
             outputs.empty() ? nullptr : outputs.data());
      },
      [&] { CALL(st_predictor_refresh, predictor); },
      [&] {
        Caller caller{world, static_cast<int64_t>(world.bytes.next() % 4)};
        auto* options = FILLED(st_generate_options_init);
        if (options != nullptr && options->struct_size >= sizeof *options) options->tokens = world.number();
        const int32_t tokens[4] = {1, 2, static_cast<int32_t>(world.number()), 3};
        CALL(st_predictor_generate, predictor, world.bytes.rarely(8) ? -1 : world.bytes.next() % 5, tokens, options, on_token, &caller);
      },
  };
  world.bytes.choose(4, calls);
}

}  // namespace st::fuzz
