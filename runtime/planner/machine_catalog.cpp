// Machines and links by name, from data sheets.
#include <algorithm>
#include <array>
#include <functional>

#include "base/error.h"
#include "base/heap.h"
#include "base/lower_case.h"
#include "base/text.h"
#include "planner/target_machine.h"

namespace st {
namespace {

constexpr double kTera = 1e12, kGiga = 1e9;
constexpr int64_t kGib = int64_t{1} << 30;

struct Gpu {
  std::string_view name, compute_class, source;
  double memory_gib;  // as CUDA reports it
  double efficiency;  // of products: their share of f16_tflops, fitted to published runs (tests/planner)
  std::string_view fitted_to;
  double f16_tflops, f32_tflops;  // dense, tensor cores; fp32: those of the CUDA cores, in which our sums and products are exact fp32
  double memory_gbytes, link_gbytes, node_gbytes, host_gbytes;  // a second, one way: device memory, NVLink, network card, PCIe
};

// The figures of NVIDIA's data sheets, and of its DGX systems for the network cards of a device.
constexpr std::array<Gpu, 7> kGpus = {{
    {"a100-40g", "sm_80", "NVIDIA A100 Tensor Core GPU datasheet, June 2021 (SXM4 40 GB); DGX A100: 200 Gbit/s a GPU", 39.4, 0.681,
     "178 published runs of A100", 312, 19.5, 1555, 300, 25, 32},
    {"a100-80g", "sm_80", "NVIDIA A100 Tensor Core GPU datasheet, June 2021 (SXM4 80 GB); DGX A100: 200 Gbit/s a GPU", 79.2, 0.681,
     "178 published runs of A100", 312, 19.5, 2039, 300, 25, 32},
    {"a800-80g", "sm_80",
     "as A100 (datasheet, June 2021, SXM4 80 GB), with NVLink of 400 GB/s for 600 (NVIDIA to Reuters, 8 November 2022)", 79.2, 0.681,
     "178 published runs of A100", 312, 19.5, 2039, 200, 25, 32},
    {"h100-sxm", "sm_90", "NVIDIA H100 Tensor Core GPU datasheet, 2023 (SXM5 80 GB); DGX H100: 400 Gbit/s a GPU", 79.1, 0.537,
     "46 published runs of H100", 989.4, 67, 3350, 450, 50, 64},
    {"h200", "sm_90", "NVIDIA H200 Tensor Core GPU datasheet, 2024 (SXM5 141 GB); DGX H200: 400 Gbit/s a GPU", 139.8, 0.537,
     "46 published runs of H100", 989.4, 67, 4800, 450, 50, 64},
    {"v100-16g", "sm_70", "NVIDIA V100 Tensor Core GPU datasheet, 2020 (SXM2 16 GB); DGX-1: 100 Gbit/s for two GPUs", 15.7, 0.546,
     "60 published runs of V100", 125, 15.7, 900, 150, 6.25, 16},
    {"v100-32g", "sm_70", "NVIDIA V100 Tensor Core GPU datasheet, 2020 (SXM2 32 GB); DGX-1: 100 Gbit/s for two GPUs", 31.7, 0.546,
     "60 published runs of V100", 125, 15.7, 900, 150, 6.25, 16},
}};

constexpr double kLaunch = 4e-6;                                  // seconds from one kernel to the next in a stream
constexpr double kNvlinkLatency = 8e-6, kNetworkLatency = 15e-6;  // of a collective's step, as NCCL's small all-reduces take

struct NamedLink {
  std::string_view name;
  double gbits;
};
constexpr std::array<NamedLink, 4> kNetworks = {{{"10g", 10}, {"25g", 25}, {"100g", 100}, {"400g", 400}}};

/// The share of a link's rate that large collectives reach: about the bus bandwidth of nccl-tests on systems of eight GPUs.
constexpr double kLinkShare = 0.8;

/// Fused attention's share of the rate of products: its softmax runs on slower units between two products.
constexpr double kAttentionShare = 0.42;

/// The memory of a kernel and its arithmetic do not overlap here: the sum of both times is at most twice the larger one.
OpRate rate_of(std::string_view name, double tflops, double memory_gbytes) {
  return {std::string(name), 1 / (tflops * kTera), {{0, kLaunch}, {kGiga, kLaunch + 1 / memory_gbytes}}};
}

Machine machine_of(const Gpu& gpu) {
  Machine machine;
  machine.name = gpu.name;
  machine.source = text(gpu.source, "; products at ", gpu.efficiency, " of its rate, as fitted to ", gpu.fitted_to);
  machine.profile = {.device = "cuda", .kernel_class = std::string(gpu.compute_class)};
  machine.profile.reserved = kGib;  // CUDA's context, cuBLAS's workspace and NCCL's buffers
  machine.device_memory = static_cast<int64_t>(gpu.memory_gib * static_cast<double>(kGib));
  machine.ranks_per_node = 8;
  machine.in_node = {kNvlinkLatency, kLinkShare * gpu.link_gbytes * kGiga};
  machine.between_nodes = {kNetworkLatency, kLinkShare * gpu.node_gbytes * kGiga};
  machine.to_host = {kNvlinkLatency, gpu.host_gbytes * kGiga};
  RateSet rates{.threads = 1, .ranks = 8, .ops = {}, .step = 0};
  const double f16 = gpu.f16_tflops * gpu.efficiency, attention = f16 * kAttentionShare;
  rates.ops = {rate_of("attention.bf16", attention, gpu.memory_gbytes),
               rate_of("attention.f16", attention, gpu.memory_gbytes),
               rate_of("attention_backward.bf16", attention, gpu.memory_gbytes),
               rate_of("attention_backward.f16", attention, gpu.memory_gbytes),
               {"memory", 0, {{0, kLaunch}, {kGiga, kLaunch + 1 / gpu.memory_gbytes}}},
               rate_of("products.bf16", f16, gpu.memory_gbytes),
               rate_of("products.f16", f16, gpu.memory_gbytes),
               rate_of("products.f32", gpu.f32_tflops, gpu.memory_gbytes)};
  machine.rates.push_back(std::move(rates));
  return machine;
}

std::string list_of_links() {
  std::string all;
  for (const NamedLink& link : kNetworks) all += std::string(link.name) + ", ";
  return all + "nvlink";
}

}  // namespace

const std::vector<std::string>& known_machines() {
  static const auto names = once_for_the_process([] {
    std::vector<std::string> all;
    for (const Gpu& gpu : kGpus) all.emplace_back(gpu.name);
    return all;
  });
  return names;
}

Machine machine_named(std::string_view name) {
  const std::string small = lower_case(name);
  const auto those = [&](const auto& is_near) {
    std::vector<std::string> all;
    for (const Gpu& gpu : kGpus)
      if (is_near(gpu.name)) all.emplace_back(gpu.name);
    return all;
  };
  for (const Gpu& gpu : kGpus)
    if (gpu.name == name) return machine_of(gpu);
  auto near = those([&](std::string_view of) { return !small.empty() && of.starts_with(small); });
  if (near.empty()) near = those([&](std::string_view of) { return small.find(of.substr(0, of.find('-'))) != std::string::npos; });
  const auto has_kind = [&](const std::string& of) { return small.find(of.substr(of.find('-') + 1)) != std::string::npos; };  // "80g"
  if (std::ranges::any_of(near, has_kind)) std::erase_if(near, std::not_fn(has_kind));
  const std::string way =
      near.empty() ? way_out(name, known_machines(), "use one of " + listed(known_machines())) : "; did you mean " + listed(near) + "?";
  fail(Code::invalid_argument, text("plan: machine \"", name, "\" is unknown", way, way.ends_with('?') ? " Or give" : ", or",
                                    " the file of `scaletrain bench --calibrate FILE`"));
}

Machine machine_of(const MachineProfile& profile, int32_t cores) {
  constexpr double kShare = 0.8, kCoreBytes = 8 * kGiga, kUnknownRate = 1e10, kCall = 2e-6;
  const auto products_of = [&](double flops_per_cycle) {
    const double rate = flops_per_cycle * profile.clock * profile.threads;
    return 1 / (rate > 0 ? kShare * rate : kUnknownRate);
  };
  const double bytes_per_second = kCoreBytes * profile.threads;
  Machine machine;
  const bool is_processor = profile.device == "cpu" || profile.device == "reference";
  machine.name = is_processor ? profile.kernel_class : profile.device;
  machine.source = is_processor ? "the table of processors; `scaletrain bench --calibrate FILE` measures"
                                : text("a guess of processors: no rates of device ", profile.device,
                                       " are known; for times of a GPU plan for ", listed(known_machines()));
  machine.profile = profile;
  machine.device_memory = profile.memory;
  machine.ranks_per_node = cores;
  machine.in_node = {kNetworkLatency, kCoreBytes};
  machine.between_nodes = {kNetworkLatency, 10.0 / 8 * kGiga};
  machine.to_host = machine.in_node;
  const double f32 = products_of(profile.fp32_flops_per_cycle), bf16 = products_of(profile.bf16_flops_per_cycle);
  machine.rates.push_back({.threads = profile.threads,
                           .ranks = std::max(1, cores / std::max(1, profile.threads)),
                           .ops = {{"memory", 0, {{0, kCall}, {kGiga, kCall + kGiga / bytes_per_second}}},
                                   {"products.bf16", bf16, {{0, kCall}}},
                                   {"products.f16", f32, {{0, kCall}}},
                                   {"products.f32", f32, {{0, kCall}}}},
                           .step = 0});
  return machine;
}

LinkRate link_named(std::string_view name) {
  for (const NamedLink& link : kNetworks)
    if (link.name == name) return {kNetworkLatency, kLinkShare * link.gbits / 8 * kGiga};
  if (name == "nvlink") return {kNvlinkLatency, kLinkShare * 300 * kGiga};
  fail(Code::invalid_argument, text("plan: link \"", name, "\" is unknown; use one of ", list_of_links()));
}

}  // namespace st
