#include "gemm_shapes.h"

#include "options.h"

namespace cli {
namespace {

constexpr GemmShape plain(int64_t m, int64_t n, int64_t k) { return {m, n, k}; }
constexpr GemmShape square(int64_t size) { return {size, size, size}; }

// The three products of a linear layer in a training step, for a weight [in, out]: Y = X W, dX = dY W', dW = X' dY.
constexpr GemmShape forward(int64_t tokens, int64_t in, int64_t out) { return {tokens, out, in}; }
constexpr GemmShape dgrad(int64_t tokens, int64_t in, int64_t out) { return {tokens, in, out, false, true}; }
constexpr GemmShape wgrad(int64_t tokens, int64_t in, int64_t out) { return {in, out, tokens, true, false}; }

// The tied LM head: its weight is the token table [vocabulary, width], and logits are X W'.
constexpr int64_t kVocabulary = 50257;
constexpr GemmShape head_forward(int64_t tokens, int64_t width) { return {tokens, kVocabulary, width, false, true}; }
constexpr GemmShape head_dgrad(int64_t tokens, int64_t width) { return {tokens, width, kVocabulary}; }
constexpr GemmShape head_wgrad(int64_t tokens, int64_t width) { return {kVocabulary, width, tokens, true, false}; }

constexpr GemmShape packed(GemmShape shape) {
  shape.plain = false, shape.packed = true;
  return shape;
}
constexpr GemmShape both(GemmShape shape) {
  shape.packed = true;
  return shape;
}

// Fixed before any tuning; none is dropped. GPT-2 124M has width 768, 1.5B has 1600.
// clang-format off
constexpr GemmShape kUsualGemms[] = {
    square(16), square(32), square(64), square(128), square(256), both(square(512)), both(square(1024)), both(square(2048)), square(4096),
    forward(256, 768, 2304), both(forward(256, 768, 3072)), forward(256, 3072, 768),
    both(dgrad(256, 768, 3072)), wgrad(256, 768, 3072),
    both(forward(1024, 768, 3072)), dgrad(1024, 768, 3072), wgrad(1024, 768, 3072),
    forward(256, 1600, 6400), dgrad(256, 1600, 6400), wgrad(256, 1600, 6400),
    packed(forward(1024, 1600, 6400)), packed(dgrad(1024, 1600, 6400)), wgrad(1024, 1600, 6400),
    head_forward(256, 768), head_dgrad(256, 768), head_wgrad(256, 768),
    plain(37, 1013, 511), plain(257, 257, 257), plain(1000, 1000, 1000),
    forward(1, 768, 3072), both(forward(8, 768, 3072)), forward(16, 768, 3072), packed(forward(8, 3072, 768)),
};
constexpr GemmShape kMoreGemms[] = {
    square(48), square(96), square(192), packed(square(256)), both(square(384)), both(square(768)), both(square(1536)), square(3072),
    packed(forward(256, 768, 2304)), both(forward(256, 768, 768)), packed(forward(256, 3072, 768)),
    both(dgrad(256, 768, 2304)), both(dgrad(256, 768, 768)), both(dgrad(256, 3072, 768)), wgrad(256, 768, 2304), wgrad(256, 768, 768), wgrad(256, 3072, 768),
    both(forward(1024, 768, 2304)), both(forward(1024, 768, 768)), both(forward(1024, 3072, 768)),
    both(dgrad(1024, 768, 2304)), both(dgrad(1024, 768, 768)), packed(dgrad(1024, 768, 3072)), both(dgrad(1024, 3072, 768)),
    wgrad(1024, 768, 2304), wgrad(1024, 768, 768), wgrad(1024, 3072, 768),
    both(forward(256, 1600, 4800)), both(forward(256, 1600, 1600)), packed(forward(256, 1600, 6400)), both(forward(256, 6400, 1600)),
    both(dgrad(256, 1600, 4800)), both(dgrad(256, 1600, 1600)), packed(dgrad(256, 1600, 6400)), both(dgrad(256, 6400, 1600)),
    wgrad(256, 1600, 4800), wgrad(256, 1600, 1600), wgrad(256, 6400, 1600),
    both(forward(1024, 1600, 4800)), both(forward(1024, 1600, 1600)), forward(1024, 1600, 6400), both(forward(1024, 6400, 1600)),
    both(dgrad(1024, 1600, 4800)), both(dgrad(1024, 1600, 1600)), dgrad(1024, 1600, 6400), both(dgrad(1024, 6400, 1600)),
    wgrad(1024, 1600, 4800), wgrad(1024, 1600, 1600), wgrad(1024, 6400, 1600),
    packed(head_forward(256, 768)), packed(head_dgrad(256, 768)),
    both(head_forward(1024, 768)), both(head_dgrad(1024, 768)), head_wgrad(1024, 768),
    both(head_forward(256, 1600)), both(head_dgrad(256, 1600)), head_wgrad(256, 1600),
    plain(257, 50257, 64), plain(50257, 64, 257), plain(1000, 257, 1013), plain(511, 37, 1013), plain(1013, 511, 37),
    packed(forward(1, 768, 3072)), packed(forward(16, 768, 3072)), forward(8, 3072, 768), both(forward(1, 3072, 768)),
    both(forward(16, 3072, 768)), both(head_forward(1, 768)), both(head_forward(8, 768)), both(head_forward(16, 768)),
    both(forward(1, 1600, 6400)), both(forward(8, 1600, 6400)), both(forward(16, 1600, 6400)),
};
constexpr GemmShape kUsualGemms16[] = {
    both(square(256)), both(square(512)), both(square(1024)), both(square(2048)), square(4096),
    both(forward(256, 768, 2304)), both(forward(256, 768, 3072)), both(forward(256, 3072, 768)),
    both(dgrad(256, 768, 3072)), wgrad(256, 768, 3072), wgrad(256, 3072, 768),
    both(forward(1024, 768, 2304)), both(forward(1024, 768, 768)), both(forward(1024, 768, 3072)), both(forward(1024, 3072, 768)),
    both(dgrad(1024, 768, 3072)), both(dgrad(1024, 3072, 768)), wgrad(1024, 768, 3072), wgrad(1024, 3072, 768),
    head_forward(256, 768), both(forward(8, 768, 3072)), forward(1, 768, 3072),
    forward(1024, 1600, 6400), dgrad(1024, 1600, 6400), wgrad(1024, 1600, 6400),
};
constexpr GemmShape kMoreGemms16[] = {
    both(forward(256, 768, 768)), both(dgrad(256, 768, 2304)), both(dgrad(256, 768, 768)), both(dgrad(256, 3072, 768)),
    wgrad(256, 768, 2304), wgrad(256, 768, 768),
    both(dgrad(1024, 768, 2304)), both(dgrad(1024, 768, 768)), wgrad(1024, 768, 2304), wgrad(1024, 768, 768),
    packed(head_forward(256, 768)), both(head_dgrad(256, 768)), head_wgrad(256, 768),
    plain(37, 1013, 511), plain(257, 257, 257), plain(1000, 1000, 1000), both(forward(16, 768, 3072)), both(forward(8, 3072, 768)),
    square(16), square(32), square(64), square(128),
    both(forward(256, 1600, 4800)), both(forward(256, 1600, 1600)), both(forward(256, 1600, 6400)), both(forward(256, 6400, 1600)),
    both(dgrad(256, 1600, 4800)), both(dgrad(256, 1600, 1600)), both(dgrad(256, 1600, 6400)), both(dgrad(256, 6400, 1600)),
    wgrad(256, 1600, 4800), wgrad(256, 1600, 1600), wgrad(256, 1600, 6400), wgrad(256, 6400, 1600),
    both(forward(1024, 1600, 4800)), both(forward(1024, 1600, 1600)), packed(forward(1024, 1600, 6400)), both(forward(1024, 6400, 1600)),
    both(dgrad(1024, 1600, 4800)), both(dgrad(1024, 1600, 1600)), packed(dgrad(1024, 1600, 6400)), both(dgrad(1024, 6400, 1600)),
    wgrad(1024, 1600, 4800), wgrad(1024, 1600, 1600), wgrad(1024, 6400, 1600),
    both(head_forward(1024, 768)), both(head_dgrad(1024, 768)), head_wgrad(1024, 768),
    both(head_forward(256, 1600)), both(head_dgrad(256, 1600)), head_wgrad(256, 1600),
};
// clang-format on

constexpr int products_of(std::span<const GemmShape> shapes) {
  int products = 0;
  for (const GemmShape& shape : shapes) products += int{shape.plain} + int{shape.packed};
  return products;
}
static_assert(products_of(kUsualGemms) <= 40 && products_of(kUsualGemms16) <= 40);

}  // namespace

const char* name_of(Element element) { return element == Element::fp32 ? "fp32" : element == Element::bf16 ? "bf16" : "fp16"; }

std::string name_of(const GemmShape& s, bool packed) {
  return std::to_string(s.m) + "x" + std::to_string(s.n) + "x" + std::to_string(s.k) + " " + name_of(s.element) +
         (s.transposed_a ? " transposed-a" : "") + (s.transposed_b ? " transposed-b" : "") + (packed ? " packed" : "");
}

std::span<const GemmShape> usual_gemm_shapes(Element element) {
  if (element == Element::fp32) return kUsualGemms;
  return kUsualGemms16;
}

std::span<const GemmShape> more_gemm_shapes(Element element) {
  if (element == Element::fp32) return kMoreGemms;
  return kMoreGemms16;
}

namespace {

GemmShape gemm_shape_of(const std::string& text) {
  const size_t first = text.find('x'), second = text.find('x', first == std::string::npos ? first : first + 1);
  if (second == std::string::npos) refuse("--shape is \"", text, "\"; give MxNxK, such as 512x3072x768");
  GemmShape shape{whole_number("--shape", text.substr(0, first)), whole_number("--shape", text.substr(first + 1, second - first - 1)),
                  whole_number("--shape", text.substr(second + 1))};
  constexpr int64_t kMost = 65536;
  for (const int64_t size : {shape.m, shape.n, shape.k})
    if (size < 1 || size > kMost) refuse("--shape is \"", text, "\"; each size must be 1 to ", kMost);
  shape.packed = true;
  return shape;
}

}  // namespace

std::vector<GemmShape> gemm_shapes_of(const std::string& text) {
  std::vector<GemmShape> shapes;
  for (size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
    end = text.find(',', begin);
    shapes.push_back(gemm_shape_of(text.substr(begin, end - begin)));
  }
  return shapes;
}

}  // namespace cli
