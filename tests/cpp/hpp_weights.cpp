// Weights through scaletrain.hpp: streams, copies, tensors, prediction beside training.
#include <cstring>
#include <fstream>
#include <scaletrain/gpt2_names.hpp>
#include <sstream>

#include "sine_objects.h"

namespace {

using namespace scaletrain;
using namespace scaletrain::test;

TEST_F(Hpp, AModelGoesThroughAStreamAndBack) {
  Sine sine;
  const std::string before = sine.model.digest();
  std::stringstream stream;
  sine.model.write(stream);
  Model copy = sine.model.clone();
  sine.trainer.step(sine.batch);
  EXPECT_NE(sine.model.digest(), before);
  EXPECT_EQ(copy.digest(), before);
  copy.blend(sine.model, 1);
  EXPECT_EQ(copy.digest(), sine.model.digest());
  EXPECT_EQ(copy.read(stream).read, 4);
  EXPECT_EQ(copy.digest(), before);
}

TEST_F(Hpp, ExceptionsOfWriteAndReadArriveAndChangeNothing) {
  const Sine sine;
  const std::string before = sine.model.digest();
  EXPECT_EQ(thrown_number([&] { sine.model.write([](const void*, int64_t) { throw Mine{1}; }); }), 1);
  EXPECT_EQ(thrown_number([&] { sine.model.read([](void*, int64_t) -> int64_t { throw Mine{2}; }); }), 2);
  EXPECT_EQ(thrown_status([&] { sine.model.read([](void*, int64_t) -> int64_t { return 0; }); }), Status::corrupt);
  EXPECT_EQ(sine.model.digest(), before);
}

TEST_F(Hpp, ReadingNamesWhatIsMissingAndUnexpected) {
  const Sine sine;
  std::string bytes;
  sine.model.write([&](const void* more, int64_t count) { bytes.append(static_cast<const char*>(more), static_cast<size_t>(count)); });
  ReadOptions options;
  options.renames = {{"first.*", "third.*"}};
  ReadReport report;
  std::istringstream strict(bytes);
  EXPECT_NE(thrown_status([&] {
              sine.model.read(
                  [&](void* to, int64_t room) {
                    strict.read(static_cast<char*>(to), room);
                    return static_cast<int64_t>(strict.gcount());
                  },
                  options, report);
            }),
            Status::ok);
  EXPECT_EQ(report.missing.size(), 2U);
  EXPECT_EQ(report.unexpected.size(), 2U);
  options.partial = true;
  std::istringstream partial(bytes);
  EXPECT_EQ(sine.model.read(partial, options).read, 2);
}

TEST_F(Hpp, NamesOfGpt2ArePassedAsRenames) {
  const Context context(Sine::one_thread());
  const Model model(context, "gpt", R"({"layers":2,"width":24,"heads":3,"context":16,"vocabulary":61})", 5);
  std::ifstream file(ST_FIXTURES "/gpt2/model.safetensors", std::ios::binary);
  ReadOptions options;
  options.renames = gpt2_names();
  EXPECT_EQ(model.read(file, options).read, model.parameter_count());
}

TEST_F(Hpp, PredictionsAreOfTheSnapshotUntilItIsRefreshed) {
  Sine sine;
  const Predictor predictor(sine.model);
  std::vector<float> first(8), later(8);
  const Views inputs{{"x", view(sine.x, {8, 1})}};
  predictor.run(inputs, {{"prediction", view(first, {8, 1})}});
  sine.trainer.step(sine.batch);
  predictor.run(inputs, {{"prediction", view(later, {8, 1})}});
  EXPECT_EQ(first, later);
  predictor.refresh();
  predictor.run(inputs, {{"prediction", view(later, {8, 1})}});
  EXPECT_NE(first, later);
  const std::vector<float> constant(8);
  EXPECT_EQ(thrown_status([&] { predictor.run(inputs, {{"prediction", view(constant, {8, 1})}}); }), Status::invalid_argument);
}

TEST_F(Hpp, ASharedPredictorSeesEachStepAndIsBusyInTheMiddleOfAnUpdate) {
  Sine sine;
  PredictorOptions options;
  options.shared = true;
  options.threads = 2;
  const Predictor shared(sine.model, options), snapshot(sine.model);
  std::vector<float> first(8), later(8);
  const Views inputs{{"x", view(sine.x, {8, 1})}};
  shared.run(inputs, {{"prediction", view(first, {8, 1})}});
  snapshot.run(inputs, {{"prediction", view(later, {8, 1})}});
  EXPECT_EQ(first, later);
  sine.trainer.step(sine.batch);
  shared.run(inputs, {{"prediction", view(later, {8, 1})}});
  EXPECT_NE(first, later) << "it has no snapshot to refresh";
  bool was_busy = false;
  while (!sine.trainer.advance(sine.batch, std::chrono::nanoseconds(0)))
    was_busy |= thrown_status([&] { shared.run(inputs, {{"prediction", view(later, {8, 1})}}); }) == Status::busy;
  EXPECT_TRUE(was_busy);
  options.threads = 0;
  EXPECT_EQ(thrown_status([&] { const Predictor none(sine.model, options); }), Status::invalid_argument);
}

}  // namespace
