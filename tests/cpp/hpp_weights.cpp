// Weights through scaletrain.hpp: streams, copies, tensors, prediction during training.
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
  const auto from_stream = [&](void* to, int64_t room) { return static_cast<int64_t>(strict.read(static_cast<char*>(to), room).gcount()); };
  EXPECT_EQ(thrown_status([&] { sine.model.read(from_stream, options, report); }), Status::not_found);
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

TEST_F(Hpp, PredictionsAreOfASnapshotUntilItIsRefreshedOrOfTheWeightsThatAreShared) {
  const Sine sine;
  PredictorOptions options;
  options.shared = true;
  options.threads = 2;
  const Predictor snapshot(sine.model), shared(sine.model, options);
  const Views inputs{{"x", view(sine.x, {8, 1})}};
  const auto prediction = [&](const Predictor& predictor) {
    std::vector<float> values(8);
    predictor.run(inputs, {{"prediction", view(values, {8, 1})}});
    return values;
  };
  const std::vector<float> first = prediction(snapshot);
  EXPECT_EQ(prediction(shared), first);
  sine.trainer.step(sine.batch);
  EXPECT_EQ(prediction(snapshot), first);
  EXPECT_NE(prediction(shared), first);
  snapshot.refresh();
  EXPECT_EQ(prediction(snapshot), prediction(shared));
  const std::vector<float> constant(8);
  EXPECT_EQ(thrown_status([&] { snapshot.run(inputs, {{"prediction", view(constant, {8, 1})}}); }), Status::invalid_argument);
  options.threads = 0;
  EXPECT_EQ(thrown_status([&] { const Predictor none(sine.model, options); }), Status::invalid_argument);
}

}  // namespace
