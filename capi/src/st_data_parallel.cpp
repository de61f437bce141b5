#include <scaletrain/data_parallel.h>

#include <utility>

#include "communicator_object.h"
#include "group_call.h"
#include "guard.h"
#include "optimizer_objects.h"
#include "views.h"

using namespace st;
using namespace st::capi;

namespace {

st_data_parallel_options mean_of_usual_buckets() {
  st_data_parallel_options made{};
  made.op = ST_REDUCE_MEAN;
  made.bucket_bytes = Recipe().bucket;
  return made;
}

ExchangedGradient gradient_given(int64_t i, const st_named_view& theirs, std::vector<HostView>& by_address, const char* call) {
  ExchangedGradient made;
  made.name = theirs.name == nullptr ? text("gradient ", i) : theirs.name;
  const HostView view = written_view(made.name, &theirs.view, call);
  about_tensor(made.name, [&] {
    check(is_floating(view.dtype), call, ": \"", made.name, "\" is ", view.dtype, "; it must be f32, f64, bf16 or f16");
    check(view.is_plain(), call, ": \"", made.name,
          "\" has gaps, is not row-major or is misaligned; give it contiguous and aligned to its elements");
  });
  made.dtype = view.dtype;
  made.elements = view.shape.elements();
  made.data = view.data;
  by_address.push_back(view);
  return made;
}

std::vector<ExchangedGradient> gradients_given(int64_t n, const st_named_view* theirs) {
  constexpr const char* kCall = "st_data_parallel_create";
  check(n >= 1 && n <= kMaxGradients, kCall, ": n is ", n, "; it must be 1 to ", kMaxGradients);
  given(theirs, "st_data_parallel_create: gradients");
  std::vector<ExchangedGradient> gradients;
  gradients.reserve(static_cast<size_t>(n));  // the views borrow their names
  std::vector<HostView> by_address;
  for (int64_t i = 0; i < n; ++i) {
    gradients.push_back(gradient_given(i, theirs[i], by_address, kCall));
    by_address.back().name = gradients.back().name;
  }
  require_apart(by_address, kCall);
  return gradients;
}

}  // namespace

st_status st_data_parallel_options_init(st_data_parallel_options* options, size_t size) {
  return init(options, size, mean_of_usual_buckets());
}

st_status st_data_parallel_create(st_communicator* communicator, int64_t n, const st_named_view* gradients,
                                  const st_data_parallel_options* options, st_data_parallel** data_parallel) {
  return guard([&] {
    constexpr const char* kCall = "st_data_parallel_create";
    given(data_parallel, "st_data_parallel_create: data_parallel");
    auto members = peek(communicator);  // first, so that allocations use its context's memory
    auto object = std::make_shared<DataParallelObject>();
    object->group = std::move(members);
    const GroupCall call(Kind::communicator, object->group);
    const auto theirs = options == nullptr ? mean_of_usual_buckets() : take(options, "st_data_parallel_create: options");
    check(theirs.op == ST_REDUCE_SUM || theirs.op == ST_REDUCE_MEAN, kCall, ": op is ", theirs.op, "; use ST_REDUCE_SUM or ST_REDUCE_MEAN");
    check(theirs.bucket_bytes >= 1, kCall, ": bucket_bytes is ", theirs.bucket_bytes, "; give 1 or more");
    std::vector<ExchangedGradient> ours = gradients_given(n, gradients);
    CommunicatorObject& group = *object->group;
    take_turn(group);
    const auto op = static_cast<ReduceOp>(theirs.op);
    require_same_exchange(*group.ranks, ours, op, theirs.bucket_bytes);
    object->exchange = std::make_unique<GradientExchange>(*group.ranks, std::move(ours), op, theirs.bucket_bytes, group.queue);
    hand_out(data_parallel, std::move(object));
  });
}

st_status st_data_parallel_destroy(st_data_parallel* data_parallel) { return drop(data_parallel); }

st_status st_data_parallel_gradient_ready(st_data_parallel* data_parallel, int64_t i) {
  return guard([&] {
    const auto object = find(data_parallel);
    const GroupCall call(Kind::communicator, object->group);
    object->exchange->ready(i);
  });
}

st_status st_data_parallel_synchronize(st_data_parallel* data_parallel) {
  return guard([&] {
    const auto object = find(data_parallel);
    const GroupCall call(Kind::communicator, object->group);
    object->exchange->synchronize();
  });
}

st_status st_data_parallel_no_sync(st_data_parallel* data_parallel, int32_t on) {
  return guard([&] { find(data_parallel)->exchange->set_local(on != 0); });
}
