#include <scaletrain/distributed_sampler.h>

#include "data/distributed_sampler.h"
#include "data_objects.h"
#include "guard.h"

using namespace st;
using namespace st::capi;

namespace {

st_distributed_sampler_options alone_and_shuffled() {
  st_distributed_sampler_options made{};
  made.shuffle = 1;
  made.size = 1;
  made.last = ST_LAST_ROWS_SHARE;
  return made;
}

}  // namespace

st_status st_distributed_sampler_options_init(st_distributed_sampler_options* options, size_t size) {
  return init(options, size, alone_and_shuffled());
}

st_status st_distributed_sampler_create(int64_t rows, const st_distributed_sampler_options* options, st_distributed_sampler** sampler) {
  return guard([&] {
    given(sampler, "st_distributed_sampler_create: sampler");
    const auto theirs = options == nullptr ? alone_and_shuffled() : take(options, "st_distributed_sampler_create: options");
    SamplerOptions ours;
    ours.rows = rows;
    ours.rank = theirs.rank;
    ours.size = theirs.size;
    ours.seed = theirs.seed;
    ours.shuffle = theirs.shuffle != 0;
    ours.last = static_cast<LastRows>(theirs.last);
    hand_out(sampler, std::make_shared<DistributedSamplerObject>(ours));
  });
}

st_status st_distributed_sampler_destroy(st_distributed_sampler* sampler) { return drop(sampler); }

st_status st_distributed_sampler_next(st_distributed_sampler* sampler, int64_t count, int64_t* rows, int64_t* own, int64_t* all) {
  return guard([&] {
    constexpr int64_t kMost = int64_t{1} << 30;
    const auto object = find(sampler);
    check(count >= 1 && count <= kMost, "st_distributed_sampler_next: count is ", count, "; it must be 1 to ", kMost);
    given(rows, "st_distributed_sampler_next: rows");
    int64_t& ours = given(own, "st_distributed_sampler_next: own");
    int64_t& together = given(all, "st_distributed_sampler_next: all");
    const auto taken = object->sampler.next({rows, static_cast<size_t>(count)});
    ours = taken.own;
    together = taken.all;
  });
}

st_status st_distributed_sampler_set_epoch(st_distributed_sampler* sampler, int64_t epoch) {
  return guard([&] { find(sampler)->sampler.set_epoch(epoch); });
}

st_status st_distributed_sampler_cursor(st_distributed_sampler* sampler, int64_t* cursor) {
  return guard([&] { given(cursor, "st_distributed_sampler_cursor: cursor") = find(sampler)->sampler.cursor(); });
}

st_status st_distributed_sampler_set_cursor(st_distributed_sampler* sampler, int64_t cursor) {
  return guard([&] { find(sampler)->sampler.set_cursor(cursor); });
}
