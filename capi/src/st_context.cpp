#include "base/os/machine.h"
#include "context_object.h"
#include "guard.h"

using namespace st;
using namespace st::capi;

template <>
constexpr uint32_t st::capi::kFirstSize<st_context_options> = offsetof(st_context_options, late_parameters);
template <>
constexpr uint32_t st::capi::kFirstSize<st_memory_stats> = offsetof(st_memory_stats, peak_bytes);

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
      ours.late_parameters = theirs.late_parameters != 0;
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

st_status st_context_destroy(st_context* context) { return drop(context); }

st_status st_context_cancel(st_context* context) {
  return signal(context, [](ContextObject& object) { object.context->cancel(); });
}

st_status st_context_trim(st_context* context) {
  return guard([&] { peek(context)->context->trim(); });
}

st_status st_context_use_stream(st_context* context, int64_t stream) {
  return guard([&] { peek(context)->context->host_order().use(stream); });
}

st_status st_context_stream(st_context* context, int64_t* stream) {
  return guard([&] {
    const auto c = peek(context)->context;
    given(stream, "st_context_stream: stream") = c->host_order().handle();
  });
}

st_status st_memory_stats_init(st_memory_stats* stats, size_t size) { return init(stats, size, st_memory_stats{}); }

st_status st_context_memory(st_context* context, st_memory_stats* stats) {
  return guard([&] {
    const auto home = peek(context)->context;
    const MemoryAccount::Uses uses = home->memory()->account().uses();
    st_memory_stats ours{};
    ours.allocated_bytes = uses.all.now;
    ours.available_bytes = home->available_memory();
    ours.resident_bytes = os::resident_memory();
    ours.peak_bytes = uses.all.peak;
    ours.limit_bytes = home->options().memory_limit;
    for (size_t role = 0; role < uses.of.size(); ++role) {
      ours.role_bytes[role] = uses.of[role].now;
      ours.role_peak_bytes[role] = uses.of[role].peak;
    }
    give(stats, ours, "st_context_memory: stats");
  });
}

st_status st_context_reset_peak(st_context* context) {
  return guard([&] { peek(context)->context->memory()->account().reset_peak(); });
}

st_status st_memory_role_name(int32_t role, const char** name) {
  return guard([&] {
    const char*& out = given(name, "st_memory_role_name: name");
    require(role >= 0 && role < kMemoryRoles, Code::not_found, "st_memory_role_name: ", role, " is not a role; it must be 0 to ",
            kMemoryRoles - 1);
    out = name_of(static_cast<MemoryRole>(role)).data();
  });
}
