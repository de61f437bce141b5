// The model "llama" against LlamaForCausalLM of transformers. fixtures/make_llama_fixture.py makes and describes the file.
#include "models/llama.h"
#include "parity.h"
#include "parts/context.h"

namespace st {
namespace {

class LlamaParity : public ::testing::TestWithParam<const char*> {};

TEST_P(LlamaParity, LogitsAndGradientsAreThoseOfTransformers) {
  const ParityFixture fixture("llama_parity.safetensors");
  const conformance::Tensor tokens = fixture.tensor("tokens"), logits = fixture.tensor("logits");
  const Program program = differentiated(build_llama({.layers = fixture.number("layers"),
                                                      .width = fixture.number("width"),
                                                      .heads = fixture.number("heads"),
                                                      .groups = fixture.number("groups"),
                                                      .context = fixture.number("context"),
                                                      .vocabulary = fixture.number("vocabulary"),
                                                      .ffn = fixture.number("ffn"),
                                                      .rope_base = fixture.real("rope_base"),
                                                      .rms_norm_epsilon = fixture.real("rms_norm_epsilon")}),
                                         tokens.shape()[0]);
  const Context context(ContextOptions{.device = GetParam(), .threads = 2, .log = {}, .parallel = {}, .memory = {}});
  conformance::Interpreter interpreter(context.backend(), program);
  fixture.set_parameters(interpreter, program);
  interpreter.set("tokens", tokens);
  interpreter.set("targets", fixture.tensor("targets"));
  interpreter.run(Phase::forward);
  // Both are fp32, and logits go up to 2.3: they differed by 9e-7, and the worst tensor's gradient by 6e-7 of its L2 norm. Ten times that
  // leaves room for other instruction sets and devices; a forgotten gain, base or epsilon is off by thousands of times more.
  const conformance::Tensor ours = interpreter.value(program.outputs[0].value);
  ASSERT_EQ(ours.shape(), logits.shape());
  for (int64_t i = 0; i < ours.elements(); ++i) EXPECT_NEAR(ours.at(i), logits.at(i), 1e-5) << i;
  const double count = interpreter.value(program.loss_count).at(0);
  interpreter.run(Phase::backward);
  EXPECT_EQ(expect_gradients(interpreter, program, fixture, count, 1e-5), 3 + 7 * fixture.number("layers"));
}

INSTANTIATE_TEST_SUITE_P(All, LlamaParity, ::testing::Values("cpu", "reference"),
                         [](const auto& tested) { return std::string(tested.param); });

}  // namespace
}  // namespace st
