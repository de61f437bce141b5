#include "gemm/machine_model.h"

#include <algorithm>

namespace st {
namespace {

// Cycles, and bytes per cycle, typical of recent server cores. They differ between cores by less than the model's own error.
constexpr double kLatencyOfFma = 4, kLoadsPerCycle = 2, kBytesFromL2 = 48, kBytesFromL3 = 12, kBytesFromMemory = 6, kBytesPacked = 12;
constexpr double kLate = 0.3;                 // share of the L3 bytes that a core waits for; the rest is prefetched
constexpr double kCyclesToSynchronise = 3e3;  // synchronising all threads at the end of each step

double count_blocks(int64_t size, int64_t of) {
  const int64_t whole = of <= 0 ? 1 : (size + of - 1) / of;
  return static_cast<double>(whole);
}

/// Cycles per step along K for one tile: the maximum of arithmetic, latency (with too few sums) and loads.
double cycles_of_step(const TileSchedule& s, const MachineModel& machine) {
  const double vectors = static_cast<double>(s.nr) / static_cast<double>(machine.lanes), sums = static_cast<double>(s.mr) * vectors;
  const double fma_per_cycle = machine.flops_per_cycle / (2.0 * static_cast<double>(machine.lanes));
  const auto together = static_cast<double>(std::max<int64_t>(s.kr, 1));  // this many steps share one latency and the same loads
  return std::max({sums / fma_per_cycle, kLatencyOfFma / together, (static_cast<double>(s.mr) + vectors) / kLoadsPerCycle / together});
}

double size_of(DType type) { return static_cast<double>(bytes_of(type)); }

}  // namespace

double flops_of(const GemmProblem& p) {
  return 2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k) * static_cast<double>(p.batch);
}

MachineModel machine_model(const os::CpuIdentity& cpu, std::string_view kernel_class, const GemmProblem& problem, double clock) {
  MachineModel machine;
  machine.clock = clock;
  if (cpu.l1_bytes > 0) machine.caches.l1 = cpu.l1_bytes;
  if (cpu.l2_bytes > 0) machine.caches.l2 = cpu.l2_bytes;
  if (cpu.l3_bytes > 0) machine.caches.l3 = cpu.l3_bytes;
  // AMD cores before family 26 split a 512-bit FMA into two halves.
  const bool halves = cpu.vendor == "AuthenticAMD" && cpu.family < 26;
  if (kernel_class == "portable") machine.flops_per_cycle = 16;
  if (kernel_class.starts_with("avx512") || kernel_class == "amx_bf16") machine.lanes = 16, machine.flops_per_cycle = halves ? 32 : 64;
  if (kernel_class.starts_with("avx2")) machine.lanes = 8, machine.flops_per_cycle = 32;
  // vdpbf16ps does twice the work of an FMA on AMD, half of it on Intel; a tile product takes 16 cycles.
  if (problem.a_type == DType::bf16 && problem.b_type == DType::bf16) {
    if (kernel_class == "avx512_bf16") machine.flops_per_cycle *= cpu.vendor == "AuthenticAMD" ? 2 : 0.5;
    if (kernel_class == "amx_bf16") machine.flops_per_cycle = 1024;
  }
  return machine;
}

double predicted_seconds(const GemmProblem& p, const TileSchedule& s, const MachineModel& machine, int threads) {
  if (p.m == 0 || p.n == 0 || p.k == 0 || p.batch == 0 || machine.peak() == 0) return 0;
  const auto m = static_cast<double>(p.m), n = static_cast<double>(p.n), k = static_cast<double>(p.k);
  const double bytes_of_depth = static_cast<double>(std::min(s.kc, p.k)) * 4;  // bytes of a packed row or column
  const double blocks_n = count_blocks(p.n, s.block_n), blocks_m = count_blocks(p.m, s.block_m), blocks_k = count_blocks(p.k, s.kc);
  const auto holds = [](int64_t cache, double bytes) { return bytes <= 0.75 * static_cast<double>(cache); };

  // Register tiles: arithmetic, overlapped with loads of A and B from L1 or L2.
  const double steps = count_blocks(p.m, s.mr) * count_blocks(p.n, s.nr) * k;
  const bool panel_stays = holds(machine.caches.l1, bytes_of_depth * static_cast<double>(s.nr));
  const double bytes_of_step = 4.0 * static_cast<double>(s.mr + (panel_stays ? 0 : s.nr));
  const double tiles = steps * std::max(cycles_of_step(s, machine), bytes_of_step / kBytesFromL2);

  // Tasks: A stays in L2, if it fits, while panels of B pass.
  const bool a_stays = holds(machine.caches.l2, bytes_of_depth * static_cast<double>(s.mc + s.nr));
  const double from_l3 = 4 * (m * k * count_blocks(p.n, a_stays ? s.nc : s.nr) + n * k * count_blocks(p.m, s.mc));
  const double tasks = count_blocks(std::min(p.m, s.block_m), s.mc) * count_blocks(std::min(p.n, s.block_n), s.nc);
  const double rounds = count_blocks(static_cast<int64_t>(tasks), threads);
  const double waiting = rounds * threads / tasks;  // 1: every thread is busy to the end

  // Blocks: packing, and traffic of C: one pass per K block, two from the second on.
  const bool keeps_a = blocks_m * blocks_k == 1, keeps_b = blocks_n * blocks_k == 1 || s.order == LoopOrder::n_k_m || blocks_m == 1;
  const double packed_a = m * k * (keeps_a ? 1 : blocks_n), packed_b = s.packs_b() ? n * k * (keeps_b ? 1 : blocks_m) : 0;
  const double through_c = m * n * size_of(p.c_type) * (p.beta != 0 ? 2 : 1) + 8 * m * n * (blocks_k - 1);
  const double operands = m * k * size_of(p.a_type) + n * k * size_of(p.b_type);
  const bool in_l3 = holds(machine.caches.l3, operands + m * n * size_of(p.c_type));
  const double block_bytes =
      4 * static_cast<double>(s.kc) * (std::min(m, static_cast<double>(s.block_m)) + std::min(n, static_cast<double>(s.block_n)));
  const double spilled = holds(machine.caches.l3, block_bytes) ? 0 : from_l3 * kLate / kBytesFromMemory;

  const double shared = tiles + from_l3 * kLate / kBytesFromL3 + spilled;
  const double spread = 4 * (packed_a + packed_b) / kBytesPacked + (operands + through_c) / (in_l3 ? kBytesFromL3 : kBytesFromMemory);
  const double synchronising_cycles = threads > 1 ? kCyclesToSynchronise * blocks_n * blocks_m * blocks_k : 0;
  const double cycles = (shared * waiting + spread) / threads + synchronising_cycles;
  return cycles * static_cast<double>(p.batch) / machine.clock;
}

}  // namespace st
