#include <scaletrain/sharded_optimizer.h>

#include <utility>

#include "communicator_object.h"
#include "exchange.h"
#include "group_call.h"
#include "guard.h"
#include "optimizer_objects.h"
#include "views.h"

using namespace st;
using namespace st::capi;

namespace {

st_sharded_optimizer_options usual_options() {
  st_sharded_optimizer_options made{};
  made.stage = 1;
  made.op = ST_REDUCE_MEAN;
  made.bucket_bytes = Recipe().bucket;
  return made;
}

ShardOptions options_given(const st_sharded_optimizer_options* options) {
  constexpr const char* kCall = "st_sharded_optimizer_create";
  const auto theirs = options == nullptr ? usual_options() : take(options, "st_sharded_optimizer_create: options");
  check(theirs.stage == 1 || theirs.stage == 2, kCall, ": stage is ", theirs.stage,
        "; it must be 1 (sharded state) or 2 (sharded state and gradient sums)");
  check(theirs.op == ST_REDUCE_SUM || theirs.op == ST_REDUCE_MEAN, kCall, ": op is ", theirs.op, "; use ST_REDUCE_SUM or ST_REDUCE_MEAN");
  check(theirs.shard_masters == 0 || theirs.shard_masters == 1, kCall, ": shard_masters is ", theirs.shard_masters, "; it must be 0 or 1");
  check(theirs.bucket_bytes >= 1, kCall, ": bucket_bytes is ", theirs.bucket_bytes, "; give 1 or more");
  return {.stage = theirs.stage,
          .op = static_cast<ReduceOp>(theirs.op),
          .bucket_bytes = theirs.bucket_bytes,
          .shard_masters = theirs.shard_masters == 1};
}

/// With n 0, the gradients given before; at stage 1 there are none.
std::span<const HostView> gradients_given(ShardedOptimizerObject& o, int64_t n, const st_view* gradients, const char* call) {
  if (n == 0) return {};
  take_gradients(o.gradients, o.optimizer->optimizer(), n, gradients, call);
  return o.gradients;
}

std::vector<HostView> state_given(int64_t n, const st_named_view* views) {
  constexpr const char* kCall = "st_sharded_optimizer_load_state";
  constexpr int64_t kMost = 1 + 4 * kMaxGradients;
  check(n >= 1 && n <= kMost, kCall, ": n is ", n, "; it must be 1 to ", kMost);
  given(views, "st_sharded_optimizer_load_state: views");
  std::vector<HostView> state;
  for (int64_t i = 0; i < n; ++i) {
    check(views[i].name != nullptr, kCall, ": view ", i, " has no name (NULL)");
    state.push_back(read_view(views[i].name, &views[i].view, kCall));
  }
  return state;
}

/// A call that exchanges.
class OptimizerCall {
 public:
  explicit OptimizerCall(ShardedOptimizerObject& o) : call_(Kind::communicator, o.group) {
    o.state = {};
    take_turn(*o.group);
  }

 private:
  GroupCall call_;
};

}  // namespace

st_status st_sharded_optimizer_options_init(st_sharded_optimizer_options* options, size_t size) {
  return init(options, size, usual_options());
}

st_status st_sharded_optimizer_create(st_communicator* communicator, const char* json, int64_t n, const st_named_view* parameters,
                                      const st_sharded_optimizer_options* options, st_sharded_optimizer** optimizer) {
  return guard([&] {
    constexpr const char* kCall = "st_sharded_optimizer_create";
    given(optimizer, "st_sharded_optimizer_create: optimizer");
    auto members = peek(communicator);  // first, so that allocations use its context's memory
    auto object = std::make_shared<ShardedOptimizerObject>();
    object->group = std::move(members);
    const OptimizerCall turn(*object);
    const ShardOptions ours = options_given(options);
    const std::vector<std::string> names = names_of_parameters(n, parameters, kCall);
    const std::vector<HostView> views = views_of_parameters(names, parameters, kCall);
    CommunicatorObject& group = *object->group;
    object->optimizer =
        std::make_unique<ShardedOptimizer>(group.context, *group.ranks, json == nullptr ? "" : json, views, ours, group.queue);
    hand_out(optimizer, std::move(object));
  });
}

st_status st_sharded_optimizer_destroy(st_sharded_optimizer* optimizer) { return drop(optimizer); }

st_status st_sharded_optimizer_gradient_ready(st_sharded_optimizer* optimizer, int64_t i, const st_view* gradient) {
  return guard([&] {
    const auto o = find(optimizer);
    const GroupCall call(Kind::communicator, o->group);
    o->optimizer->gradient_ready(i, read_view("gradient", gradient, "st_sharded_optimizer_gradient_ready"));
  });
}

st_status st_sharded_optimizer_step(st_sharded_optimizer* optimizer, int64_t n, const st_view* gradients, st_optimizer_report* report) {
  return guard([&] {
    const auto o = find(optimizer);
    const OptimizerCall turn(*o);
    if (report != nullptr) take(report, "st_sharded_optimizer_step: report");
    const auto theirs = gradients_given(*o, n, gradients, "st_sharded_optimizer_step");
    const st_optimizer_report ours = report_of(o->optimizer->step(theirs));
    if (report != nullptr) give(report, ours, "st_sharded_optimizer_step: report");
  });
}

st_status st_sharded_optimizer_step_scaled(st_sharded_optimizer* optimizer, st_loss_scaler* scaler, int64_t n, const st_view* gradients,
                                           st_optimizer_report* report) {
  return guard([&] {
    const auto o = find(optimizer);
    const auto s = find(scaler);
    const OptimizerCall turn(*o);
    if (report != nullptr) take(report, "st_sharded_optimizer_step_scaled: report");
    const auto theirs = gradients_given(*o, n, gradients, "st_sharded_optimizer_step_scaled");
    HostOptimizer::Report done;
    const auto step = [&](double scale) {
      done = o->optimizer->step(theirs, scale);
      return !done.skipped;
    };
    s->step->step_by(std::ref(step));  // by reference: std::function would allocate for the captures
    if (report != nullptr) give(report, report_of(done), "st_sharded_optimizer_step_scaled: report");
  });
}

st_status st_sharded_optimizer_keep_copies(st_sharded_optimizer* optimizer, int64_t n, const st_view* copies) {
  return guard([&] {
    const auto o = find(optimizer);
    o->optimizer->keep_copies(copies_of(o->optimizer->optimizer(), n, copies, "st_sharded_optimizer_keep_copies"));
  });
}

st_status st_sharded_optimizer_set(st_sharded_optimizer* optimizer, const char* key, const char* json) {
  return guard([&] {
    const auto o = find(optimizer);
    o->optimizer->set(text_given(key, "st_sharded_optimizer_set: key"), text_given(json, "st_sharded_optimizer_set: json"));
  });
}

st_status st_sharded_optimizer_gather_state(st_sharded_optimizer* optimizer, int32_t rank, int64_t* n, const st_named_view** views) {
  return guard([&] {
    const auto o = find(optimizer);
    const OptimizerCall turn(*o);
    given(n, "st_sharded_optimizer_gather_state: n");
    given(views, "st_sharded_optimizer_gather_state: views");
    if (rank != -1) rank_given(*o->group->ranks, "rank", rank, "st_sharded_optimizer_gather_state");
    o->state.list(o->optimizer->gather_state(rank));
    *n = std::ssize(o->state.views);
    *views = o->state.views.data();
  });
}

st_status st_sharded_optimizer_load_state(st_sharded_optimizer* optimizer, int64_t n, const st_named_view* views) {
  return guard([&] {
    const auto o = find(optimizer);
    o->optimizer->load_state(state_given(n, views));
    o->state = {};
  });
}
