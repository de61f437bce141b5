// scaletrain info: the devices and features of this machine, and the reason for each one that is missing.
#include <cstdio>
#include <memory>

#include "options.h"

namespace cli {
namespace {

std::string extensions(const Json& cpu) {
  std::string list;
  for (const auto& [key, name] :
       {std::pair{"avx2_fma", "AVX2+FMA"}, {"avx512", "AVX-512"}, {"avx512_bf16", "AVX-512 BF16"}, {"amx_bf16", "AMX BF16"}})
    if (cpu.value(key, false)) list += (list.empty() ? "" : ", ") + std::string(name);
  return list.empty() ? "none of AVX2, AVX-512" : list;
}

void print(const Json& features) {
  const Json& cpu = features["cpu"];
  std::printf("scaletrain  %s\n", features["version"].get<std::string>().c_str());
  std::printf("processor   %s (family %d, model %d)\n", cpu["brand"].get<std::string>().c_str(), cpu["family"].get<int>(),
              cpu["model"].get<int>());
  std::printf("vectors     %s\n", extensions(cpu).c_str());
  std::printf("caches      %lld KiB L1, %lld KiB L2, %lld KiB L3\n", cpu["l1_bytes"].get<long long>() / 1024,
              cpu["l2_bytes"].get<long long>() / 1024, cpu["l3_bytes"].get<long long>() / 1024);
  std::printf("cores       %d for this process\n", features["cores"].get<int>());
  std::printf("memory      %.1f GiB available\n", features["memory_bytes"].get<double>() / double(1 << 30));
  if (const Json& machine = features["machine"]; machine.contains("why"))
    std::printf("machine     unknown: %s\n", machine["why"].get<std::string>().c_str());
  else
    std::printf("machine     %s, threads: %d, %.2f GHz (measured), flops per cycle and core: %g fp32, %g bf16 (table)\n",
                machine["kernel_class"].get<std::string>().c_str(), machine["threads"].get<int>(),
                machine["measured"]["clock"].get<double>() / 1e9, machine["table"]["fp32_flops_per_cycle"].get<double>(),
                machine["table"]["bf16_flops_per_cycle"].get<double>());
  for (const Json& device : features["devices"]) {
    const bool there = device["available"].get<bool>();
    std::printf("device      %-13s %s\n", device["name"].get<std::string>().c_str(),
                there ? (std::to_string(device["count"].get<int>()) + ", kernels: " + device["kernels"].get<std::string>()).c_str()
                      : ("missing: " + device["why"].get<std::string>()).c_str());
    if (device.contains("without")) std::printf("            %-13s %s\n", "", device["without"].get<std::string>().c_str());
  }
  for (const Json& transport : features["transports"]) {
    const bool there = transport["available"].get<bool>();
    const std::string text = there ? "ranks: " + transport["joins"].get<std::string>() : "missing: " + transport["why"].get<std::string>();
    std::printf("transport   %-13s %s\n", transport["name"].get<std::string>().c_str(), text.c_str());
  }
}

}  // namespace

Command info_command(CLI::App& app) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("info", "devices and transports, reasons for missing ones, versions, processor, chosen kernels");
  command->add_flag("--json", *json, "one JSON object");
  return {command, [json] {
            const Json features = Json::parse(text(st_features));
            if (*json)
              std::printf("%s\n", features.dump(2).c_str());
            else
              print(features);
            return kDone;
          }};
}

}  // namespace cli
