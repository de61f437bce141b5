#include "base/os.h"
#include "guard.h"
#include "objects.h"

using namespace st;
using namespace st::capi;

st_status st_context_options_init(st_context_options* options, size_t size) {
  st_context_options defaults{};
  defaults.device = "cpu";
  return init(options, size, defaults);
}

st_status st_context_create(const st_context_options* options, st_context** context) {
  return guard([&] {
    given(context, "st_context_create: context");
    ContextOptions ours;
    Heap::Own heap;
    if (options != nullptr) {
      const st_context_options theirs = take(options, "st_context_create: options");
      if (theirs.device != nullptr) ours.device = theirs.device;
      check_threads("st_context_create", theirs.threads, "this process's cores");
      ours.threads = theirs.threads;
      ours.memory_limit = theirs.memory_limit;
      ours.log.write = theirs.log;
      ours.log.user = theirs.log_user;
      ours.parallel.run = theirs.parallel;
      ours.parallel.user = theirs.parallel_user;
      if (theirs.tuning_cache != nullptr) ours.tuning_cache = theirs.tuning_cache;
      check((theirs.alloc == nullptr) == (theirs.free == nullptr), "st_context_create: ", theirs.alloc == nullptr ? "free" : "alloc",
            " is given without ", theirs.alloc == nullptr ? "alloc" : "free", "; give both or neither");
      if (theirs.alloc != nullptr) {
        const HostAllocator host = {theirs.alloc, theirs.free, theirs.memory_user};
        heap = Heap::create(host);
        Heap::serve(heap.get());
        ours.memory = std::make_shared<MemorySource>(host);
      }
    }
    auto object = std::make_shared<ContextObject>();
    object->context = std::make_shared<Context>(ours);
    hand_out(context, std::move(object));
  });
}

st_status st_context_destroy(st_context* context) {
  return guard([&] { drop(context); });
}

st_status st_context_cancel(st_context* context) {
  return signal(context, [](ContextObject& object) { object.context->cancel(); });
}

st_status st_context_trim(st_context* context) {
  return guard([&] { peek(context)->context->trim(); });
}

st_status st_memory_stats_init(st_memory_stats* stats, size_t size) { return init(stats, size, st_memory_stats{}); }

st_status st_context_memory(st_context* context, st_memory_stats* stats) {
  return guard([&] {
    const auto object = peek(context);
    st_memory_stats ours{};
    ours.allocated_bytes = object->context->backend().allocated_bytes();
    ours.available_bytes = object->context->available_memory();
    ours.resident_bytes = os::resident_memory();
    give(stats, ours, "st_context_memory: stats");
  });
}
