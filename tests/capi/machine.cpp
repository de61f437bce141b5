// st_machine_calibrate: what the planner is told about this machine.
#include <string>

#include "held.h"

namespace {

using namespace st::test;

TEST(Machines, AreMeasuredWithTheirProcessorAndTheLibrarysVersion) {
  const auto context = hold<HeldContext>(st_context_create, nullptr);
  const char *machine = nullptr, *version = nullptr;
  ASSERT_TRUE(works(st_version(&version)));
  ASSERT_TRUE(works(st_machine_calibrate(context, R"({"seconds": 0, "quick": true})", &machine)));
  const std::string json = machine;
  const std::string library = "\"library\":\"" + std::string(version) + '"';
  for (const char* part : {"\"measured\":true", library.c_str(), "\"processor\":\"", "\"name\":\"products.bf16\"", "\"name\":\"memory\"",
                           "\"name\":\"adamw.f32\""})
    EXPECT_NE(json.find(part), std::string::npos) << part;
}

TEST(Machines, RefuseOptionsThatTheyDoNotHave) {
  const auto context = hold<HeldContext>(st_context_create, nullptr);
  const char* machine = nullptr;
  const auto measure = [&](const char* options) { return st_machine_calibrate(context, options, &machine); };
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, measure(R"({"second": 1})"), {"st_machine_calibrate", "\"second\"", "did you mean seconds"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, measure(R"({"seconds": 1000})"), {"seconds must be 0 to 600, got 1000"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, measure(R"({"quick": 1})"), {"quick"}));
  EXPECT_EQ(machine, nullptr);
}

}  // namespace
