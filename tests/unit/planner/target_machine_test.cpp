#include "planner/target_machine.h"

#include <gtest/gtest.h>

#include "refusal.h"

namespace st {
namespace {

TEST(TargetMachine, KnownOnesAreReadAsTheyAreWritten) {
  for (const std::string& name : known_machines()) {
    const Machine machine = machine_named(name);
    EXPECT_EQ(json_of(parse_machine(json_of(machine))), json_of(machine)) << name;
    EXPECT_FALSE(machine.is_measured);
    EXPECT_GT(machine.device_memory, machine.profile.reserved);
    EXPECT_NE(machine.rates_for(1, 8).find("products.bf16"), nullptr);
  }
}

TEST(TargetMachine, AnUnknownNameGetsTheNearest) {
  const auto named = [](const char* name) { return [name] { (void)machine_named(name); }; };
  EXPECT_TRUE(refuses({"machine \"a100-80\" is unknown; did you mean a100-80g? Or give the file of `scaletrain bench --calibrate"},
                      named("a100-80")));
  EXPECT_TRUE(refuses({"did you mean h100-sxm? Or"}, named("H100")));
  EXPECT_TRUE(refuses({"did you mean a100-40g, a100-80g? Or"}, named("NVIDIA A100")));
  EXPECT_TRUE(refuses({"did you mean v100-32g? Or"}, named("V100-SXM2-32GB")));
  EXPECT_TRUE(refuses({"use one of a100-40g, a100-80g, a800-80g, h100-sxm, h200, v100-16g, v100-32g, or the file of"}, named("rtx4090")));
  EXPECT_TRUE(refuses({"10g, 25g, 100g, 400g, nvlink"}, [&] { (void)link_named("40g"); }));
}

TEST(TargetMachine, RatesAreLinearBetweenPointsAndBeyond) {
  const OpRate rate{"memory", 2e-9, {{0, 1}, {10, 2}, {20, 6}}};
  EXPECT_DOUBLE_EQ(rate.seconds({.flops = 0, .bytes = 5}), 1.5);
  EXPECT_DOUBLE_EQ(rate.seconds({.flops = 1e9, .bytes = 10}), 4);
  EXPECT_DOUBLE_EQ(rate.seconds({.flops = 0, .bytes = 30}), 10);
}

TEST(TargetMachine, RatesOfTheNearestNumberOfBusyCoresAreTaken) {
  Machine machine;
  machine.name = "two cores";
  machine.rates = {RateSet{1, 1, {}, 0}, RateSet{2, 1, {}, 0}, RateSet{1, 2, {}, 0}};
  const auto taken = [&](int32_t threads, int32_t ranks) {
    const RateSet& set = machine.rates_for(threads, ranks);
    return std::pair(set.threads, set.ranks);
  };
  EXPECT_EQ(taken(1, 2), std::pair(1, 2));
  EXPECT_EQ(taken(2, 1), std::pair(2, 1));
  EXPECT_EQ(taken(1, 4), std::pair(1, 2));
  EXPECT_EQ(taken(8, 1), std::pair(2, 1));
  machine.rates.clear();
  EXPECT_TRUE(refuses(Code::unavailable, {"has no rates", "--calibrate"}, [&] { (void)machine.rates_for(1, 1); }));
}

TEST(TargetMachine, RatesOfTheSmallestSetThatHasRoomForThePlanAreTaken) {
  Machine machine;
  machine.rates = {RateSet{.threads = 1, .ranks = 1, .ops = {}, .step = 0},
                   RateSet{.threads = 1, .ranks = 1, .ops = {}, .step = 0, .memory = 1 << 20},
                   RateSet{.threads = 2, .ranks = 1, .ops = {}, .step = 0, .memory = 1 << 10}};
  EXPECT_EQ(machine.rates_for(1, 1, 1000).memory, 1 << 20);
  EXPECT_EQ(machine.rates_for(1, 1, 1 << 20).memory, 1 << 20);
  EXPECT_EQ(machine.rates_for(1, 1, 1 << 21).memory, RateSet::kAnyMemory);
  EXPECT_EQ(machine.rates_for(1, 1).memory, RateSet::kAnyMemory);
  EXPECT_EQ(machine.rates_for(2, 1, 1 << 21).threads, 2);  // cores count for more
}

TEST(TargetMachine, RefusesAFileOfAnotherKind) {
  const std::string good = json_of(machine_named("h200"));
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string json = good;
    EXPECT_NE(json.find(from), std::string::npos) << from;
    return json.replace(json.find(from), from.size(), to);
  };
  EXPECT_TRUE(refuses({"version is missing", "--calibrate"}, [&] { (void)parse_machine("{}"); }));
  EXPECT_TRUE(refuses({"version must be 2, got 7"}, [&] { (void)parse_machine(with("\"version\":2", "\"version\":7")); }));
  EXPECT_TRUE(refuses({"measured must be true or false"}, [&] { (void)parse_machine(with("\"measured\":false", "\"measured\":0")); }));
  EXPECT_TRUE(refuses({"seconds_by_bytes must rise in bytes from 0"}, [&] { (void)parse_machine(with("[[0,", "[[-1,")); }));
  EXPECT_TRUE(refuses({"latency is missing"}, [&] { (void)parse_machine(with("\"latency\"", "\"late\"")); }));
  EXPECT_TRUE(refuses({"reserved_bytes is missing"}, [&] { (void)parse_machine(with("\"reserved_bytes\":1073741824,", "")); }));
  EXPECT_TRUE(refuses({"device must be one of cpu, reference, cuda"}, [&] { (void)parse_machine(with("\"cuda\"", "\"tpu\"")); }));
}

}  // namespace
}  // namespace st
