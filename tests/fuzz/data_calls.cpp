// Data from files, arrays and callbacks.
#include "api_calls.h"

#include <vector>

#include "call_arguments.h"
#include "host_callbacks.h"

namespace st::fuzz {
void data_create(World& world) {
  if (world.data.live.size() > 5) return;
  st_context* context = world.handle(world.contexts);
  const Calls calls = {
      [&] {
        if (world.bytes.rarely(2))
          return MAKE(st_data_files, data, context, (World::folder() + "/read/text.txt").c_str(), R"({"context": 4})");
        MAKE(st_data_files, data, context, path(world, "read").c_str(), json(world));
      },
      [&] {
        const std::vector<st_named_view> arrays = world.bytes.rarely(4) ? world.views("x") : world.batch(false);
        const int64_t rows =
            world.bytes.rarely(4) || arrays.empty() || arrays[0].view.dims == nullptr ? world.number() : arrays[0].view.dims[0];
        const size_t before = world.data.live.size();
        MAKE(st_data_arrays, data, context, rows, static_cast<int64_t>(arrays.size()), arrays.data(), released, &world);
        world.lent += static_cast<int64_t>(world.data.live.size() - before);
      },
      [&] {
        const st_field fields[] = {{"x", ST_F32, 1, world.dims({1})},
                                   {"y", ST_F32, 1, world.bytes.rarely(4) ? world.dims() : world.dims({1})}};
        // Not 2^40 rows: an evaluation would read all of them, which is correct but takes days.
        static constexpr std::array<int64_t, 6> kRows = {16, 16, 1, 0, -1, 300};
        elsewhere().fill_behaviour = world.bytes.next();
        const size_t before = world.data.live.size();
        MAKE(st_data_callback, data, context, world.bytes.pick(kRows), world.bytes.rarely() ? world.number() % 3 : 2, fields,
             world.bytes.rarely(16) ? nullptr : fill_rows, released, &world);
        world.lent += static_cast<int64_t>(world.data.live.size() - before);
      },
  };
  world.bytes.choose(3, calls);
}

void data_use(World& world) {
  st_data* data = world.handle(world.data);
  int64_t count = 0;
  double loss = 0;
  const Calls calls = {
      [&] { CALL(st_data_rows, data, world.bytes.rarely() ? nullptr : &count); },
      [&] { CALL(st_data_vocabulary, data, world.bytes.rarely() ? nullptr : &count); },
      [&] { CALL(st_data_bigram_loss, data, world.handle(world.data), &loss); },
      [&] {
        if (world.data.live.size() > 5) return;
        static constexpr std::array<double, 6> kFractions = {0.5, 0.1, 0, 1, -1, 1e300};
        st_data *train = nullptr, *validation = nullptr;
        const st_status status = st_data_split(data, world.bytes.pick(kFractions), world.number(), &train, &validation);
        world.keep("st_data_split", world.data, status, train);
        world.keep("st_data_split", world.data, status, validation);
      },
  };
  world.bytes.choose(4, calls);
}

}  // namespace st::fuzz
