#include "context_object.h"
#include "gemm_arguments.h"
#include "gemm_objects.h"
#include "guard.h"
#include "model/host_bytes.h"

using namespace st;
using namespace st::capi;

namespace {

constexpr double kLibrarySeconds = 10;  // for libraries without tiles, if no time is given

}  // namespace

st_status st_gemm_problem_init(st_gemm_problem* problem, size_t size) {
  st_gemm_problem defaults{};
  defaults.a_dtype = defaults.b_dtype = defaults.c_dtype = ST_F32;
  defaults.batch = 1;
  return init(problem, size, defaults);
}

st_status st_gemm_schedule_init(st_gemm_schedule* schedule, size_t size) { return init(schedule, size, st_gemm_schedule{}); }

st_status st_gemm_info_init(st_gemm_info* info, size_t size) { return init(info, size, st_gemm_info{}); }

st_status st_epilogue_init(st_epilogue* epilogue, size_t size) { return init(epilogue, size, st_epilogue{}); }

st_status st_gemm_plan_create(st_context* context, const st_gemm_problem* problem, const st_gemm_schedule* schedule, st_gemm** gemm) {
  return guard([&] {
    given(gemm, "st_gemm_plan_create: gemm");
    auto shared = peek(context)->context;  // first, so that allocations use its memory
    const Context& c = *shared;
    const GemmProblem ours = problem_of(take(problem, "st_gemm_plan_create: problem"));
    const st_gemm_schedule wish = schedule == nullptr ? st_gemm_schedule{} : take(schedule, "st_gemm_plan_create: schedule");
    check_threads("st_gemm_plan_create", wish.threads, "the context's");
    if (!c.backend().is_host_memory()) {
      check_problem(ours, "gemm");
      check_layout(ours, "gemm");
      c.require_memory(
          "st_gemm_plan_create: A, B and C on the device",
          ours.m * ours.k * bytes_of(ours.a_type) + ours.k * ours.n * bytes_of(ours.b_type) + ours.m * ours.n * bytes_of(ours.c_type));
      auto object = std::make_shared<GemmObject>();
      object->on_device = std::make_unique<DeviceGemm>(
          c.backend(), ours,
          DeviceGemm::Wish{
              .tiles = wish_of(wish).tiles, .lets_libraries = wish.library == ST_GEMM_LIBRARY_AUTO, .seconds = wish.tune_ms * 1e-3});
      object->context = std::move(shared);
      return hand_out(gemm, std::move(object));
    }
    const int threads = wish.threads == 0 ? c.threads() : wish.threads;
    const GemmKernels& kernels = c.backend().gemm();
    GemmWish wanted = wish_of(wish);
    wanted.memory_left = c.spare_memory();
    GemmChoice choice = choose_gemm(kernels, ours, wanted, threads);
    auto workers = c.make_workers(threads);
    GemmContest contest{.tiles = wish.tune_ms > 0};
    if (wish.library == ST_GEMM_LIBRARY_AUTO) contest.libraries = shared->gemm_libraries();
    const double seconds = contest.tiles ? wish.tune_ms * 1e-3 : kLibrarySeconds;
    if (contest.tiles || !contest.libraries.empty()) choice = shared->tuner().tuned(choice, wanted, *workers, seconds, contest);
    auto object = std::make_shared<GemmObject>();
    const auto memory = c.memory();
    object->context = std::move(shared);
    object->plan = std::make_unique<GemmPlan>(kernels, choice, std::move(workers), memory);
    object->usual.emplace(ours);
    hand_out(gemm, std::move(object));
  });
}

st_status st_gemm_plan_destroy(st_gemm* gemm) { return drop(gemm); }

st_status st_gemm_plan_info(st_gemm* gemm, st_gemm_info* info) {
  return guard([&] {
    const auto g = find(gemm);
    st_gemm_info ours{};
    if (g->on_device) {
      tell(*g->on_device, ours);
      ours.instruction_set = g->context->backend().kernel_class().data();
      return give(info, ours, "st_gemm_plan_info: info");
    }
    tell(g->plan->choice(), ours);
    ours.threads = g->plan->threads();
    ours.instruction_set = g->context->backend().kernel_class().data();
    ours.flops_per_second = g->plan->last_rate();
    ours.predicted_flops_per_second = predicted_rate(g->plan->choice(), g->context->backend().kernel_class(), g->plan->threads());
    give(info, ours, "st_gemm_plan_info: info");
  });
}

st_status st_gemm_pack(st_gemm* gemm, const st_view* b, st_packed** packed) {
  return guard([&] {
    given(packed, "st_gemm_pack: packed");
    const auto g = find(gemm);
    require(g->plan != nullptr, Code::unsupported, "st_gemm_pack: a device reads no packed B; give B in each run");
    const GemmChoice& choice = g->plan->choice();
    const void* data = b_of(choice.problem, b, "st_gemm_pack");
    g->context->require_memory("st_gemm_pack: packed B", choice.packed_bytes);
    auto object = std::make_shared<PackedObject>();
    object->gemm = g->shared_from_this();
    object->b = std::make_unique<PackedMatrix>(*g->plan, data, g->context->memory());
    hand_out(packed, std::move(object));
  });
}

st_status st_gemm_repack(st_packed* packed, const st_view* b) {
  return guard([&] {
    const auto p = find(packed);
    const Lease<GemmObject> g(Kind::gemm, p->gemm);  // for its threads
    p->b->repack(*g->plan, b_of(g->plan->choice().problem, b, "st_gemm_repack"));
  });
}

st_status st_packed_destroy(st_packed* packed) { return drop(packed); }

st_status st_gemm_run(st_gemm* gemm, float alpha, const st_view* a, const st_view* b, float beta, const st_view* c,
                      const st_epilogue* epilogue) {
  return guard([&] {
    const auto g = find(gemm);
    if (g->on_device) {
      const GemmArguments arguments(g->problem(), a, b, false, c, epilogue, "st_gemm_run");
      return g->on_device->run(arguments.operands, alpha, beta);
    }
    if (epilogue == nullptr)
      if (const auto usual = g->usual->of(a, b, false, c)) return g->plan->run(*usual, alpha, beta);
    const GemmArguments arguments(g->plan->choice().problem, a, b, false, c, epilogue, "st_gemm_run");
    g->plan->run(arguments.operands, alpha, beta);
  });
}

st_status st_gemm_run_packed(st_gemm* gemm, float alpha, const st_view* a, st_packed* b, float beta, const st_view* c,
                             const st_epilogue* epilogue) {
  return guard([&] {
    const auto g = find(gemm);
    const auto packed = find(b);
    require(!g->on_device, Code::unsupported, "st_gemm_run_packed: the plan's device reads no packed B; give B to st_gemm_run");
    check(g->plan->fits(*packed->b),
          "st_gemm_run_packed: b was packed for a different k, n, batch, dtype or tile; pack it with this plan, or with one that packs the "
          "same way");
    if (epilogue == nullptr) {
      if (auto usual = g->usual->of(a, nullptr, true, c)) {
        usual->packed_b = packed->b->data();
        return g->plan->run(*usual, alpha, beta);
      }
    }
    GemmArguments arguments(g->plan->choice().problem, a, nullptr, true, c, epilogue, "st_gemm_run_packed");
    arguments.operands.packed_b = packed->b->data();
    g->plan->run(arguments.operands, alpha, beta);
  });
}
