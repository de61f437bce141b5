#include "optim/parameter_groups.h"

#include "refusal.h"

namespace st {
namespace {

ParameterGroups groups_of(const std::string& json) { return ParameterGroups(parse_settings(json, "groups")); }

TEST(ParameterGroups, ThatNoParameterIsInAreRefused) {
  const std::vector<std::string> names = {"head.bias", "head.weight"};
  const auto refusal_of = [&](const char* json) { return refusal([&] { groups_of(json).check_against(names); }); };
  EXPECT_TRUE(says(refusal_of(R"([{"pattern": "tail.*"}])"),
                   {"no parameter matches the pattern \"tail.*\"; the parameters are head.bias, head.weight"}));
  EXPECT_TRUE(says(refusal_of(R"([{"pattern": "*.bias"}, {"pattern": "head.*"}, {"pattern": "head.b*"}])"),
                   {"every parameter that matches the pattern \"head.b*\"", "head.bias in the group of \"*.bias\"", "before that one"}));
  EXPECT_TRUE(says(refusal_of(R"([{"pattern": "*"}, {"pattern": "*"}])"), {"is already in an earlier group"}));
  EXPECT_NO_THROW(groups_of(R"([{"pattern": "*.bias"}, {"pattern": "head.*"}])").check_against(names));
}

TEST(ParameterGroups, RefuseKeysAndValuesByName) {
  const auto refusal_of = [&](const std::string& entry) { return refusal([&] { groups_of("[{\"pattern\": \"*\", " + entry + "}]"); }); };
  for (const auto& [key, meant] : {std::pair{"weight_decay", "weight_decay_scale"},
                                   {"lr", "lr_scale"},
                                   {"learning_rate", "lr_scale"},
                                   {"max_grad_norm", "clip"},
                                   {"requires_grad", "frozen"}})
    EXPECT_TRUE(says(refusal_of(text("\"", key, "\": 0")), {text("unknown key \"", key, "\"; did you mean \"", meant, "\"?")}));
  EXPECT_TRUE(says(refusal_of(R"("momenta": 0)"), {"there are pattern, lr_scale, weight_decay_scale, clip, frozen, optimizer"}));
  for (const char* key : {"lr_scale", "weight_decay_scale", "clip"})
    for (const char* value : {"NaN", "Infinity", "1e400", "-1", "true", "\"1\"", "null"})
      EXPECT_TRUE(says(refusal_of(text("\"", key, "\": ", value)), {text(key, " must be a number in [0, inf), got ", value)}));
  EXPECT_TRUE(says(refusal_of(R"("frozen": 1)"), {"frozen must be true or false, got 1"}));
  EXPECT_TRUE(says(refusal_of(R"("optimizer": "adamm")"), {"\"adamm\" is unknown; did you mean \"adamw\"?"}));
}

}  // namespace
}  // namespace st
