#include "context_object.h"
#include "guard.h"
#include "optimizer_objects.h"

using namespace st;
using namespace st::capi;

namespace {

void list_state(AccumulatorObject& a) {
  a.arrays = a.accumulator->state();
  for (Accumulator::StateArray& array : a.arrays) {
    const int64_t bytes = array.shape.elements() * bytes_of(array.dtype);
    a.state.push_back(
        {array.name.c_str(),
         {static_cast<st_dtype>(array.dtype), array.shape.rank(), array.shape.dims().data(), nullptr, array.data, bytes, 0, 0}});
  }
}

}  // namespace

st_status st_accumulator_create(st_context* context, int64_t steps, int64_t n, const st_view* gradients, st_accumulator** accumulator) {
  return guard([&] {
    constexpr const char* kCall = "st_accumulator_create";
    given(accumulator, "st_accumulator_create: accumulator");
    auto shared = peek(context)->context;  // first, so that allocations use its memory
    GradientViews views;
    std::vector<GradientArray> arrays;
    for (const HostView& view : views.take(n, gradients, kCall))
      arrays.push_back({.dtype = view.dtype, .shape = view.shape, .strides = view.strides, .data = view.data});
    shared->require_memory_of_parts("st_accumulator_create: sums of gradients", Accumulator::bytes(steps, arrays));
    auto object = std::make_shared<AccumulatorObject>();
    object->accumulator = std::make_unique<Accumulator>(steps, arrays, shared->make_workers(shared->threads()), shared->memory());
    object->context = std::move(shared);
    list_state(*object);
    hand_out(accumulator, std::move(object));
  });
}

st_status st_accumulator_destroy(st_accumulator* accumulator) { return drop(accumulator); }

st_status st_accumulator_add(st_accumulator* accumulator, double weight) {
  return guard([&] { find(accumulator)->accumulator->add(weight); });
}

st_status st_accumulator_should_step(st_accumulator* accumulator, int32_t* yes) {
  return guard([&] {
    given(yes, "st_accumulator_should_step: yes");
    *yes = find(accumulator)->accumulator->should_step() ? 1 : 0;
  });
}

st_status st_accumulator_weight(st_accumulator* accumulator, double* weight) {
  return guard([&] {
    given(weight, "st_accumulator_weight: weight");
    *weight = find(accumulator)->accumulator->weight();
  });
}

st_status st_accumulator_reset(st_accumulator* accumulator) {
  return guard([&] { find(accumulator)->accumulator->reset(); });
}

st_status st_accumulator_set_steps(st_accumulator* accumulator, int64_t steps) {
  return guard([&] { find(accumulator)->accumulator->set_steps(steps); });
}

st_status st_accumulator_state_views(st_accumulator* accumulator, int64_t* n, const st_named_view** views) {
  return guard([&] {
    const auto a = find(accumulator);
    given(n, "st_accumulator_state_views: n");
    given(views, "st_accumulator_state_views: views") = a->state.data();
    *n = std::ssize(a->state);
  });
}
