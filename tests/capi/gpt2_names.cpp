// Hugging Face's GPT-2 read unchanged: a model.safetensors of transformers through scaletrain/gpt2_names.h, compared with the logits of
// transformers (tests/conformance/fixtures/make_gpt2_fixture.py).
#include <scaletrain/gpt2_names.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

#include "held.h"

namespace {

using namespace st::test;

constexpr const char* kShape = R"({"layers":2,"width":24,"heads":3,"context":16,"vocabulary":61})";
constexpr int64_t kRows = 2, kContext = 16, kVocabulary = 61;

std::string fixture(const std::string& name) {
  std::ifstream file(ST_FIXTURES "/gpt2/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Bytes {
  std::string all;
  size_t at = 0;
};

st_status read_bytes(void* user, void* to, int64_t room, int64_t* count) {
  auto& bytes = *static_cast<Bytes*>(user);
  *count = std::min<int64_t>(room, static_cast<int64_t>(bytes.all.size() - bytes.at));
  std::memcpy(to, bytes.all.data() + bytes.at, static_cast<size_t>(*count));
  bytes.at += static_cast<size_t>(*count);
  return ST_OK;
}

/// `of` with each `from` replaced by `to`, which has the same length.
std::string with(std::string of, const std::string& from, const std::string& to) {
  for (size_t at; (at = of.find(from)) != std::string::npos;) of.replace(at, from.size(), to);
  return of;
}

class Gpt2Names : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(works(st_context_create(nullptr, context.out())));
    ASSERT_TRUE(works(st_model_builtin(context, "gpt", kShape, 5, model.out())));
  }
  st_status read(const std::string& bytes, int32_t partial = 0) {
    Bytes stream{bytes};
    auto options = filled(st_read_options_init);
    options.partial = partial;
    options.rename_count = ST_GPT2_NAME_COUNT;
    options.renames = st_gpt2_names;
    return st_model_read(model, read_bytes, &stream, &options, nullptr);
  }
  /// The logits of `answers.safetensors`, whose tensors follow its header in order: tokens, logits.
  void expect_logits_of_transformers() {
    const std::string answers = fixture("answers.safetensors");
    uint64_t header = 0;
    ASSERT_GT(answers.size(), 8U);
    std::memcpy(&header, answers.data(), 8);
    constexpr size_t kTokens = kRows * kContext, kLogits = kTokens * kVocabulary;
    ASSERT_EQ(answers.size(), 8 + header + 4 * (kTokens + kLogits));
    std::vector<int32_t> tokens(kTokens);
    std::vector<float> wanted(kLogits), got(kLogits);
    std::memcpy(tokens.data(), answers.data() + 8 + header, 4 * kTokens);
    std::memcpy(wanted.data(), answers.data() + 8 + header + 4 * kTokens, 4 * kLogits);

    const auto predictor = hold<HeldPredictor>(st_predictor_create, model, nullptr);
    const int64_t dims[] = {kRows, kContext, kVocabulary};
    const st_named_view in = {"tokens", {ST_I32, 2, dims, nullptr, tokens.data(), 4 * kTokens}};
    const st_named_view out = {"logits", {ST_F32, 3, dims, nullptr, got.data(), 4 * kLogits}};
    ASSERT_TRUE(works(st_predictor_run(predictor, 1, &in, 1, &out)));
    float least = 0, largest = 0;
    for (size_t i = 0; i < kLogits; ++i) {
      ASSERT_NEAR(got[i], wanted[i], 1e-4) << "logit " << i;
      least = std::min(least, wanted[i]);
      largest = std::max(largest, wanted[i]);
    }
    EXPECT_GT(largest - least, 1) << "the logits differ";
  }

  HeldContext context;
  HeldModel model;
};

TEST_F(Gpt2Names, GiveTheLogitsOfTransformers) {
  ASSERT_TRUE(works(read(fixture("model.safetensors")))) << "strict: exactly the model's weights";
  expect_logits_of_transformers();
}

TEST_F(Gpt2Names, AreThoseOfTheBareModelToo) {
  // Without "transformer.", like GPT2Model's files; blanks before the names' quotes keep the header's length.
  ASSERT_TRUE(works(read(with(fixture("model.safetensors"), "\"transformer.", "            \""))));
  expect_logits_of_transformers();
}

TEST_F(Gpt2Names, ATensorOfAnotherModelIsNamed) {
  const std::string other = with(fixture("model.safetensors"), "h.1.mlp.c_fc.bias", "h.1.mlp.c_fx.bias");
  EXPECT_TRUE(fails(ST_NOT_FOUND, read(other), {"block.1.mlp.expand.bias"}));
  EXPECT_TRUE(works(read(other, 1)));
}

}  // namespace
