#include "base/machine_profile.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "refusal.h"

namespace st {
namespace {

const std::string kJson =
    R"({"version":2,"device":"cpu","kernel_class":"amx_bf16","threads":56,"alignment":64,"memory_bytes":549755813888,"reserved_bytes":4096,)"
    R"("measured":{"clock":2.1e+09},"table":{"fp32_flops_per_cycle":64,"bf16_flops_per_cycle":1024}})";

std::string with(const std::string& from, const std::string& to) {
  std::string json = kJson;
  EXPECT_NE(json.find(from), std::string::npos) << from;
  return json.replace(json.find(from), from.size(), to);
}

TEST(MachineProfile, IsReadAsItIsWritten) {
  const MachineProfile machine = parse_machine_profile(kJson);
  EXPECT_EQ(machine.kernel_class, "amx_bf16");
  EXPECT_EQ(machine.threads, 56);
  EXPECT_EQ(machine.memory, int64_t{1} << 39);
  EXPECT_EQ(machine.reserved, 4096);
  EXPECT_EQ(machine.clock, 2.1e9);
  EXPECT_EQ(machine.bf16_flops_per_cycle, 1024);
  const std::string written = machine.json();
  EXPECT_EQ(parse_machine_profile(written).json(), written);
  EXPECT_EQ(parse_machine_profile(MachineProfile{.device = "reference", .kernel_class = "reference"}.json()).device, "reference");
}

TEST(MachineProfile, RefusesWhatIsNotOne) {
  const struct {
    std::string json;
    std::vector<std::string_view> words;
  } kWrong[] = {
      {"[]", {"must be a JSON object, got []"}},
      {R"({"device")", {"machine profile: line 1"}},
      {with("\"version\":2", "\"version\":1"), {"version must be 2, got 1", "info --json"}},
      {with("\"version\":2,", ""), {"version is missing", "info --json"}},
      {with("\"cpu\"", "\"cpux\""), {"device must be one of cpu, reference, cuda, got \"cpux\"", "did you mean \"cpu\""}},
      {with("amx_bf16", "avx51"), {"kernel_class must be one of portable, avx2, avx512, avx512_bf16, amx_bf16, got \"avx51\"", "avx512"}},
      {with("\"cpu\"", "\"reference\""), {"kernel_class must be one of reference, got \"amx_bf16\""}},
      {with("\"amx_bf16\"", "3"), {"kernel_class must be one of", "got 3"}},
      {with("\"threads\":56", "\"threads\":0"), {"threads must be a whole number in [1, 4096], got 0"}},
      {with("\"threads\":56", "\"threads\":1.5"), {"threads must be a whole number in [1, ", "got 1.5"}},
      {with("\"threads\":56,", ""), {"threads is missing"}},
      {with("\"alignment\":64", "\"alignment\":256"), {"alignment must be a whole number in [64, 64], got 256"}},
      {with("549755813888", "-1"), {"memory_bytes must be a whole number in [0, ", "got -1"}},
      {with("549755813888", "\"512G\""), {"memory_bytes must be a whole number", "got \"512G\""}},
      {with("\"reserved_bytes\":4096,", ""), {"reserved_bytes is missing"}},
      {with("4096,", "-1,"), {"reserved_bytes must be a whole number in [0, ", "got -1"}},
      {with("{\"clock\":2.1e+09}", "[]"), {"measured must be a JSON object, got []"}},
      {with("2.1e+09", "-1"), {"measured: clock must be a number of at least 0", "got -1"}},
      {with("\"fp32_flops_per_cycle\":64,", ""), {"table: fp32_flops_per_cycle is missing"}},
      {with("\"threads\"", "\"cores\":56,\"threads\""), {"version 2 has no cores"}},
      {with("{\"clock\"", "{\"bandwidth\":1e11,\"clock\""), {"measured: version 2 has no bandwidth"}},
  };
  for (const auto& [json, words] : kWrong)
    for (const std::string_view word : words)
      EXPECT_TRUE(refuses({"machine profile", word}, [&text = json] { parse_machine_profile(text); })) << json;
}

}  // namespace
}  // namespace st
