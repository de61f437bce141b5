// A ds_config.json with comments: DeepSpeed reads Hjson, and skips keys that are comments.
#include "recipe/ds_comments.h"

#include <gtest/gtest.h>

#include <string>

#include "recipe/recipe.h"
#include "refusal.h"

namespace st {
namespace {

Recipe read(const std::string& json) {
  Recipe recipe;
  recipe.merge(json);
  return recipe;
}

std::string refused_text(const std::string& json) {
  return error_of([&] { read(json); }).message();
}

TEST(DsComments, BecomeSpacesAndStringsStay) {
  EXPECT_EQ(without_comments("{\"a\": 1, // one\n \"b\": 2,}"), "{\"a\": 1,       \n \"b\": 2 }");
  EXPECT_EQ(without_comments("[1, /* , ] */ 2 , # end\n]"), "[1,           2        \n]");
  const std::string text = R"({"path": "http://x/#y,}", "quote": "\"// no"})";
  EXPECT_EQ(without_comments(text), text);
  EXPECT_EQ(without_comments("{} /* never closed"), "{}                ");
}

TEST(DsComments, OfADeepSpeedFileAreSkipped) {
  const Recipe recipe = read(R"({
    # of one device
    "train_micro_batch_size_per_gpu": 2,
    "gradient_clipping": 1.5, // largest norm
    "_comment": "ours", "cuda_visible_devices": 0,
    "bf16": {"enabled": true, "//": "as on A100",},
  })");
  EXPECT_EQ(recipe.batch, 2);
  EXPECT_EQ(recipe.clip, 1.5);
  EXPECT_EQ(recipe.precision, "bf16");
  ASSERT_EQ(recipe.notes.size(), 1U);
  for (const char* key : {"_comment", "cuda_visible_devices"}) EXPECT_NE(recipe.notes[0].find(key), std::string::npos) << recipe.notes[0];
}

TEST(DsComments, OfAnotherRecipeAreRefusedAndSaidToBeTheReason) {
  const std::string message = refused_text("{\"lr\": 0.1, // high\n}");
  for (const char* words : {"line 1, column", "comments"}) EXPECT_NE(message.find(words), std::string::npos) << message;
  EXPECT_NE(refused_text(" \n").find("the text is empty"), std::string::npos) << refused_text(" \n");
}

TEST(DsComments, KeysOfOldFilesAreTaken) {
  EXPECT_EQ(read(R"({"train_batch_size": 2, "zero_optimization": true})").zero, 1);
  EXPECT_EQ(read(R"({"train_batch_size": 2, "zero_optimization": false})").zero, 0);
  const std::string optimizer = R"("optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "max_grad_norm": 0.5}})";
  EXPECT_EQ(read("{\"train_batch_size\": 2, " + optimizer + "}").clip, 0.5);
  EXPECT_EQ(read("{\"train_batch_size\": 2, \"gradient_clipping\": 0.5, " + optimizer + "}").clip, 0.5);
  const std::string message = refused_text("{\"train_batch_size\": 2, \"gradient_clipping\": 1, " + optimizer + "}");
  EXPECT_NE(message.find("gradient_clipping is 1 and optimizer.params.max_grad_norm is 0.5"), std::string::npos) << message;
  EXPECT_NE(refused_text(R"({"zero_optimization": {"stage": 2, "zenflow": {}}})").find("DeepSpeed"), std::string::npos);
}

}  // namespace
}  // namespace st
