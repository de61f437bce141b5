// A host program in C++ that uses only the installed files: a small net learns y = sin x; exits with 0 if it did.
#include <cmath>
#include <iostream>
#include <scaletrain.hpp>
#include <vector>

namespace {

bool learns_the_sine() {
  constexpr int64_t kRows = 64;
  std::vector<float> x, y;
  for (int64_t i = 0; i < kRows; ++i) {
    x.push_back(-3.0F + 6.0F * static_cast<float>(i) / (kRows - 1));
    y.push_back(std::sin(x.back()));
  }
  const scaletrain::Context context;
  const scaletrain::Model model(context, "mlp", R"({"inputs": 1, "hidden": [32], "outputs": 1})", 1);
  const scaletrain::Trainer trainer(model, scaletrain::Recipe(R"({"batch": 64, "lr": 0.01})"));
  const scaletrain::Views batch{{"x", scaletrain::view(x, {kRows, 1})}, {"y", scaletrain::view(y, {kRows, 1})}};
  const double first = trainer.step(batch).loss;
  double last = first;
  for (int step = 1; step < 100; ++step) last = trainer.step(batch).loss;
  std::cout << "loss " << first << ", then " << last << '\n';
  return last < first / 4;
}

}  // namespace

int main() {
  try {
    scaletrain::require();
    return learns_the_sine() ? 0 : 1;
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
