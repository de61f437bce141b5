// Products alone: plans, packed operands, runs with and without an epilogue.
#include "api_calls.h"
#include "call_arguments.h"

namespace st::fuzz {
namespace {

constexpr int64_t kSize = 4;  // of a valid problem

/// Usually valid.
int64_t size(World& world) { return world.bytes.rarely(16) ? world.number() : kSize; }
int64_t stride(World& world) { return world.bytes.rarely(16) ? world.number() : 0; }
st_view square(World& world) { return world.bytes.rarely(8) ? world.view() : world.view_of({kSize, kSize}); }

void make_plan(World& world) {
  auto* problem = FILLED(st_gemm_problem_init);
  if (problem != nullptr && problem->struct_size >= sizeof *problem) {
    problem->m = size(world), problem->n = size(world), problem->k = size(world);
    if (world.bytes.rarely()) problem->batch = world.number();
    problem->a_row = stride(world), problem->b_column = stride(world), problem->c_row = stride(world);
    problem->c_batch = stride(world);
    if (world.bytes.rarely(16)) problem->shared_b = static_cast<int32_t>(world.number());
    if (world.bytes.rarely(16)) problem->b_dtype = 1 + world.bytes.next() % 8;
  }
  auto* schedule = world.bytes.rarely(2) ? FILLED(st_gemm_schedule_init) : nullptr;
  if (schedule != nullptr && schedule->struct_size >= sizeof *schedule) {
    schedule->threads = world.bytes.rarely() ? -1 : world.bytes.next() % 3;
    schedule->tile_m = stride(world), schedule->tile_n = stride(world), schedule->tile_k = stride(world);
    schedule->block_m = stride(world), schedule->micro_m = stride(world);
    schedule->order = world.bytes.next() % 4, schedule->packing = world.bytes.next() % 4;
    if (world.bytes.rarely(4)) schedule->max_scratch_bytes = world.number();
    if (world.bytes.rarely()) schedule->tune_ms = world.bytes.next() % 4 - 1;
    if (world.bytes.rarely()) schedule->library = world.bytes.rarely(2) ? 2 : -1;  // AUTO would run other libraries' code
  }
  MAKE(st_gemm_plan_create, gemms, world.handle(world.contexts), problem, schedule);
}

/// Its views exist as long as the world.
st_epilogue* epilogue(World& world) {
  if (!world.bytes.rarely(2)) return nullptr;
  auto* made = FILLED(st_epilogue_init);
  if (made == nullptr || made->struct_size < sizeof *made) return made;
  const auto view = [&](const st_view& from) -> const st_view* {
    if (!world.bytes.rarely(4)) return nullptr;
    auto* kept = static_cast<st_view*>(world.memory(sizeof(st_view)));
    *kept = world.bytes.rarely(8) ? world.view() : from;
    return kept;
  };
  made->activation = world.bytes.rarely(16) ? static_cast<st_activation>(world.number()) : world.bytes.next() % 5;
  made->bias = view(world.view_of({kSize}));
  made->pre_activation = view(world.view_of({kSize, kSize}));
  made->derivative_at = view(world.view_of({kSize, kSize}));
  made->residual = view(world.view_of({kSize, kSize}));
  made->column_sums = view(world.view_of({kSize}));
  return made;
}

float factor(World& world) { return world.bytes.rarely() ? static_cast<float>(world.number()) : 1.0F; }

}  // namespace

void gemm_use(World& world) {
  if (world.gemms.live.size() > 3) return DESTROY(st_gemm_plan_destroy, gemms);
  if (world.packed.live.size() > 3) return DESTROY(st_packed_destroy, packed);
  st_gemm* gemm = world.handle(world.gemms);
  const st_view a = square(world), b = square(world), c = world.bytes.rarely(16) ? a : square(world);
  const Calls calls = {
      [&] { make_plan(world); },
      [&] { make_plan(world); },
      [&] { CALL(st_gemm_plan_info, gemm, FILLED(st_gemm_info_init)); },
      [&] { MAKE(st_gemm_pack, packed, gemm, &b); },
      [&] { CALL(st_gemm_repack, world.handle(world.packed), world.bytes.rarely(16) ? nullptr : &b); },
      [&] { CALL(st_gemm_run_packed, gemm, factor(world), &a, world.handle(world.packed), factor(world), &c, epilogue(world)); },
      [&] { CALL(st_gemm_run, gemm, factor(world), &a, &b, factor(world), world.bytes.rarely(16) ? nullptr : &c, epilogue(world)); },
  };
  world.bytes.choose(8, calls);
}

}  // namespace st::fuzz
