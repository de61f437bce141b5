#include "planner/rank_plan.h"

#include <algorithm>
#include <utility>

#include "passes/scale_loss.h"
#include "plan/exchange_memory.h"
#include "plan/input_copies.h"
#include "plan/kernel_segments.h"
#include "recipe/can_offload.h"
#include "recipe/can_shard_masters.h"
#include "recipe/fast_collectives.h"
#include "recipe/kernel_needs_of.h"

namespace st {
namespace {

bool is_in_range(const PlannedRun& run, int32_t rank) { return rank >= 0 && rank < run.recipe.ranks; }

/// As a trainer of this rank would plan.
PlanOptions options_of(const PlannedRun& run, const MeshPosition& at) {
  const Recipe& recipe = run.recipe;
  PlanOptions options;
  options.rank = at.data;
  options.tensor_rank = at.tensor;
  options.stage = at.stage;
  const bool has_own = moves_parameters(recipe, kernel_needs(run.machine.profile).has_own_memory);
  options.shares_masters = run.by_threads && recipe.ranks > 1 && recipe.tensor == 1 && !has_own;
  options.borrows_parameters =
      run.by_threads && recipe.stages > 1 && !threads_have_copies(run.mesh(), recipe.zero, has_own) && at.data == 0;
  options.shards_masters = !run.by_threads && run.late_parameters && can_shard_masters(recipe, has_own);
  return options;
}

/// A device has memory of its own, and the host's; a cpu has one memory.
bool has_device(const PlannedRun& run) { return run.machine.profile.device == "cuda"; }

/// NCCL's buffers of the groups that a run has, one along each axis with several ranks: in each channel it has NCCL_BUFFSIZE bytes, 4 MiB
/// (NCCL's user guide, "Environment Variables"), and 32 channels at most (NCCL_MAX_NCHANNELS there). An estimate until it is measured.
int64_t network_memory(const Mesh& mesh) {
  constexpr int64_t kChannels = 32, kBufferBytes = int64_t{4} << 20;
  const auto has_several = [&](MeshAxis axis) { return mesh.size(axis) > 1 ? 1 : 0; };
  return kChannels * kBufferBytes * (has_several(MeshAxis::data) + has_several(MeshAxis::tensor) + has_several(MeshAxis::stage));
}

/// Graphs of the kernels that a device records: 22 MiB for one of 10,000 kernels on an H100 (tests/gpu/README.md). A kernel of the plan is
/// taken for one of the device, which may run several for it.
int64_t recordings_memory(const Plan& plan) {
  constexpr int64_t kMeasured = int64_t{22} << 20, kMeasuredKernels = 10'000;
  return recorded_kernels(plan) * kMeasured / kMeasuredKernels;
}

PlannedMemory memory_of(const Plan& plan, const PlannedRun& run) {
  PlannedMemory use;
  use.reserved = run.machine.profile.reserved;
  if (has_device(run)) {
    const InputCopies copies = input_copies(plan);
    use.inputs = copies.bytes;
    use.pinned = 2 * align_up(copies.upload_bytes());
    use.recordings = recordings_memory(plan);
    if (run.by_threads) {
      use.terms = staged_memory(plan);  // threads read each other's terms where they lie
    } else {
      use.terms = exchange_memory(plan);
      use.network = std::min(use.reserved, network_memory(plan.program.mesh));
    }
  }
  for (size_t a = 0; a < kArenas; ++a) {
    if (plan.memory.in_file[a]) {
      use.file += plan.memory.bytes[a];
    } else {
      (plan.memory.on_host[a] ? use.host : use.device)[a] = plan.memory.bytes[a];
    }
  }
  use.device[static_cast<size_t>(Arena::parameters)] += run.share_of_whole();
  if (plan.program.rank == 0) use.host[static_cast<size_t>(Arena::parameters)] += run.whole_on_host();
  return use;
}

RankNumbers numbers_of(const Plan& plan, const PlannedRun& run) {
  RankNumbers numbers;
  const int64_t micro_batches = run.recipe.step_micro_batches(), ranks_per_node = std::max<int64_t>(1, run.ranks_per_node());
  for (int32_t axis = 0; axis < kMeshAxes; ++axis)
    numbers.traffic[static_cast<size_t>(axis)].nodes = nodes_of_group(plan.program, static_cast<MeshAxis>(axis), ranks_per_node);
  numbers.memory = memory_of(plan, run);
  numbers.instructions = static_cast<int64_t>(plan.instructions.size());
  for (const Instruction& at : plan.instructions) {
    if (!at.sends() || at.makes == Copy::gathered) continue;
    const ExchangePlan& exchange = plan.exchanges[static_cast<size_t>(at.exchange)];
    const MeshAxis axis = at.kind == Instruction::Kind::send ? MeshAxis::stage : exchange.axis;
    if (axis == MeshAxis::all) continue;
    AxisTraffic& traffic = numbers.traffic[static_cast<size_t>(axis)];
    traffic.bytes += sent_bytes(plan, at, micro_batches);
    traffic.collectives += at.kind == Instruction::Kind::send ? 0 : 1;
    const SentByLink sent = sent_by_link(plan, at, micro_batches, ranks_per_node);
    traffic.direct += sent.direct;
    traffic.native += sent.native;
  }
  numbers.flops = flops_of(plan);
  numbers.repeated_flops = plan.recompute.cost().flops * static_cast<double>(plan.micro_batches);
  return numbers;
}

int64_t whole_bytes(const Program& model) {
  int64_t bytes = 0;
  for (const Slot& slot : model.slots) bytes += slot.role == Role::parameter ? align_up(slot.type.bytes()) : 0;
  return bytes;
}

/// Packed weights only save time: where they do not fit, a trainer computes the same bits without them.
Plan plan_that_fits(const PlannedRun& run, PlanOptions options) {
  const KernelNeeds needs = kernel_needs(run.machine.profile);
  const int64_t most = run.device_memory_of_rank();
  Plan plan = plan_training(run.model, run.recipe, needs, options);
  const bool packs = std::ranges::find(plan.program.slots, Role::packed, &Slot::role) != plan.program.slots.end();
  if (!packs || memory_of(plan, run).device_total() <= most) return plan;
  options.skip.emplace_back("pack_weights");
  return plan_training(run.model, run.recipe, needs, options);
}

/// Times of one action on a micro-batch: all chunks of this stage together, with the collectives on the computing thread.
StageTimes stage_times(const RankTrace& trace, int64_t micro_batches) {
  StageTimes times{0, 0, 0};
  const auto count = static_cast<double>(micro_batches);
  int32_t section = -1;
  for (const TraceEvent& event : trace.events) {
    if (event.kind == TraceEvent::Kind::compute) section = event.section;
    const bool takes_time =
        event.kind == TraceEvent::Kind::compute || (event.kind == TraceEvent::Kind::exchange && event.axis == MeshAxis::tensor);
    if (!takes_time || section < 0) continue;
    const Phase phase = trace.phases[static_cast<size_t>(section)];
    if (phase == Phase::update) continue;
    (phase == Phase::forward           ? times.forward
     : phase == Phase::backward_weight ? times.backward_weight
                                       : times.backward_input) += event.seconds / count;
  }
  return times;
}

double schedule_wait(const RankTrace& trace, const Recipe& recipe) {
  if (recipe.stages == 1) return 0;
  const PipelineSchedule schedule = schedule_of(recipe);
  const StageTimes times = stage_times(trace, schedule.micro_batches);
  return bubble(schedule, times) * makespan(schedule, times);
}

}  // namespace

int32_t PlannedRun::threads() const {
  if (machine.profile.device == "cuda") return 1;
  if (recipe.threads > 0) return static_cast<int32_t>(recipe.threads);
  const auto on_node = static_cast<int32_t>(std::min<int64_t>(recipe.ranks, machine.ranks_per_node));
  return std::max(1, machine.ranks_per_node / std::max(1, on_node));
}

int64_t PlannedRun::device_memory_of_rank() const {
  if (machine.profile.device == "cuda") return machine.device_memory;
  return machine.device_memory / std::max<int64_t>(1, by_threads ? recipe.ranks : std::min<int64_t>(recipe.ranks, machine.ranks_per_node));
}

int64_t PlannedRun::whole_on_host() const {
  if (!moves_parameters(recipe, kernel_needs(machine.profile).has_own_memory)) return 0;
  return by_threads && threads_have_copies(mesh(), recipe.zero, true) ? whole_bytes(model) : 0;
}

int64_t PlannedRun::share_of_whole() const {
  const bool is_one_copy = recipe.tensor == 1 && recipe.stages == 1 && (recipe.zero != 3 || recipe.data_ranks() == 1);  // rank 0's
  if (!by_threads || is_one_copy || whole_on_host() > 0) return 0;
  return (whole_bytes(model) + recipe.ranks - 1) / recipe.ranks;
}

double PlannedRun::tokens_per_step() const {
  if (!model.loss_sum) return 0;
  return static_cast<double>(rows_of_loss(model, recipe.batch)) * static_cast<double>(recipe.step_micro_batches());
}

int64_t PlannedMemory::device_total() const {
  int64_t sum = reserved + inputs + terms + recordings;
  for (const int64_t bytes : device) sum += bytes;
  return sum;
}

int64_t PlannedMemory::host_total() const {
  int64_t sum = pinned;
  for (const int64_t bytes : host) sum += bytes;
  return sum;
}

double StepShares::all() const {
  double sum = computing + bubble;
  for (const double seconds : exchange) sum += seconds;
  return sum;
}

StepShares shares_alone(const RankTrace& trace) {
  using Kind = TraceEvent::Kind;
  StepShares shares;
  double now = 0, free = 0;  // of the computing thread; when the last collective of the data axis ended
  std::vector<double> ended;
  const auto wait_until = [&](double when, MeshAxis axis) {
    if (when <= now) return;
    shares.exchange[static_cast<size_t>(axis)] += when - now;
    now = when;
  };
  for (const TraceEvent& event : trace.events) {
    if (event.kind == Kind::compute) {
      now += event.seconds;
      shares.computing += event.seconds;
    }
    if (event.kind == Kind::await) wait_until(ended[static_cast<size_t>(event.number)], MeshAxis::data);
    if (event.kind != Kind::exchange && event.kind != Kind::post) continue;
    if (event.axis != MeshAxis::data) {
      wait_until(now + event.seconds, event.axis == MeshAxis::all ? MeshAxis::stage : event.axis);
      continue;
    }
    free = std::max(now, free) + event.seconds;
    ended.push_back(free);
    if (event.kind == Kind::exchange) wait_until(free, MeshAxis::data);
  }
  wait_until(free, MeshAxis::data);
  return shares;
}

StepShares shares_of(const RankTrace& trace, const Recipe& recipe) {
  StepShares shares = shares_alone(trace);
  shares.bubble = schedule_wait(trace, recipe);
  return shares;
}

double RankPlan::bubble(const Recipe& recipe) const {
  const StepShares of = shares(recipe);
  return of.all() > 0 ? of.bubble / of.all() : 0;
}

double seconds_on_one_rank(const PlannedRun& run) {
  PlannedRun one = run;
  Recipe& recipe = one.recipe;
  const auto micro_batches = static_cast<double>(run.recipe.step_micro_batches());
  recipe.ranks = recipe.stages = recipe.tensor = recipe.accumulate = 1;
  recipe.zero = recipe.micro_batches = recipe.global_batch = 0;
  if (is_schedule_table(recipe.schedule)) recipe.schedule = "1f1b";
  recipe.stage_starts.clear();
  const double first = plan_of_rank(one, 0).step_seconds(recipe);
  if (micro_batches == 1) return first;
  recipe.accumulate = 2;
  return first + (micro_batches - 1) * (plan_of_rank(one, 0).step_seconds(recipe) - first);
}

bool is_of_recipe(const Error& error) {
  return error.code() == Code::invalid_argument || error.code() == Code::unsupported || error.code() == Code::out_of_memory;
}

RankPlan plan_of_rank(const PlannedRun& run, int32_t rank, BegunPlans* begun) {
  const Mesh mesh = run.mesh();
  check(is_in_range(run, rank), "plan: rank is ", rank, "; a run of ", run.recipe.ranks, " ranks has ranks 0 to ", run.recipe.ranks - 1);
  require_fast_collectives(run.recipe, kernel_needs(run.machine.profile).has_own_memory, run.by_threads, run.machine.profile.device);
  const MeshPosition at = position_of(mesh, rank);
  BegunPlans own;
  PlanOptions options = options_of(run, at);
  options.begun = begun == nullptr ? &own : begun;
  Plan plan = plan_that_fits(run, std::move(options));
  RankNumbers numbers = numbers_of(plan, run);
  RankTrace trace = trace_of(plan, {run.recipe.step_micro_batches(), run.machine, run.placement(), run.threads()});
  return {at, std::move(plan), numbers, std::move(trace)};
}

}  // namespace st
