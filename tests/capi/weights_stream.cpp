// Weights through callbacks: one safetensors stream out of a model and into another, and malformed streams.
#include <cstring>
#include <limits>
#include <thread>

#include "small_run.h"

namespace {

using namespace st::test;

/// A stream in memory, handed out a few bytes at a time, that can misbehave on request.
struct Stream {
  std::string bytes;
  size_t at = 0;
  int64_t piece = 7;
  int64_t fail_after = -1;  // bytes
  int64_t lie = 0;          // added to the count
  int64_t calls = 0;
  st_model* call_back_into = nullptr;

  /// By this thread or another.
  void expect_not_destroyed() const {
    EXPECT_TRUE(fails(ST_BUSY, st_model_destroy(call_back_into), {"st_model_destroy", "model"}));
    std::thread([this] { EXPECT_TRUE(fails(ST_BUSY, st_model_destroy(call_back_into))); }).join();
  }
  static st_status write(void* user, const void* data, int64_t count) {
    auto& s = *static_cast<Stream*>(user);
    ++s.calls;
    if (s.call_back_into != nullptr) {
      const char* hex = nullptr;
      EXPECT_TRUE(fails(ST_BUSY, st_model_digest(s.call_back_into, &hex)));
      s.expect_not_destroyed();
    }
    if (s.fail_after >= 0 && static_cast<int64_t>(s.bytes.size()) + count > s.fail_after) return ST_IO;
    s.bytes.append(static_cast<const char*>(data), static_cast<size_t>(count));
    return ST_OK;
  }
  static st_status read(void* user, void* room, int64_t most, int64_t* count) {
    auto& s = *static_cast<Stream*>(user);
    ++s.calls;
    if (s.call_back_into != nullptr) {
      EXPECT_TRUE(fails(ST_BUSY, st_model_read(s.call_back_into, read, user, nullptr, nullptr)));
      s.expect_not_destroyed();
    }
    if (s.fail_after >= 0 && static_cast<int64_t>(s.at) >= s.fail_after) return ST_TIMEOUT;
    const auto n = std::min({most, s.piece, static_cast<int64_t>(s.bytes.size() - s.at)});
    std::memcpy(room, s.bytes.data() + s.at, static_cast<size_t>(n));
    s.at += static_cast<size_t>(n);
    *count = s.lie != 0 ? s.lie : n;
    return ST_OK;
  }
};

std::string safetensors(const std::string& header, size_t data_bytes) {
  const uint64_t length = header.size();
  std::string file(8, '\0');
  std::memcpy(file.data(), &length, 8);
  return file + header + std::string(data_bytes, '\0');
}

class WeightsStream : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(works(st_context_create(nullptr, context.out())));
    model = mlp(1);
    other = mlp(2);
    ASSERT_TRUE(works(st_model_write(model, Stream::write, &stream)));
    before = digest(other);
  }
  HeldModel mlp(int64_t seed) {
    return hold<HeldModel>(st_model_builtin, context, "mlp", R"({"inputs": 2, "hidden": [3], "outputs": 2})", seed);
  }
  static std::string digest(st_model* of) { return text_of(st_model_digest, of); }
  st_status read(st_read_report* report = nullptr) {
    return st_model_read(other, Stream::read, &stream, has_options ? &options : nullptr, report);
  }
  /// Sets renames and `partial` for the next reads.
  void with(int32_t partial, std::vector<st_rename> renames = {}) {
    options = filled(st_read_options_init);
    options.partial = partial;
    kept = std::move(renames);
    options.rename_count = static_cast<int64_t>(kept.size());
    options.renames = kept.data();
    has_options = true;
    stream.at = 0;
  }
  void expect_refused(const std::string& bytes, st_status status, std::initializer_list<std::string_view> words) {
    stream.bytes = bytes;
    stream.at = 0;
    EXPECT_TRUE(fails(status, read(), words));
    EXPECT_EQ(digest(other), before);
  }

  HeldContext context;
  HeldModel model, other;
  Stream stream;
  st_read_options options;
  std::vector<st_rename> kept;
  bool has_options = false;
  std::string before;
};

TEST_F(WeightsStream, IsTheFileAndReadsBackTheSame) {
  const std::string path = file_of("stream.safetensors", stream.bytes);
  ASSERT_TRUE(works(st_model_read_file(mlp(3), path.c_str(), nullptr, nullptr)));
  stream.bytes += "what follows in the host's own protocol";
  auto report = filled(st_read_report_init);
  ASSERT_TRUE(works(read(&report)));
  EXPECT_EQ(digest(other), digest(model));
  EXPECT_EQ(report.read, 4);
  EXPECT_EQ(report.missing_count + report.unexpected_count, 0);
  EXPECT_EQ(stream.bytes.substr(stream.at), "what follows in the host's own protocol") << "nothing is read beyond the stream";
}

TEST_F(WeightsStream, GoesThroughRenames) {
  std::string& bytes = stream.bytes;
  for (size_t at; (at = bytes.find("layer.")) != std::string::npos;) bytes.replace(at, 6, "lstm_/");
  with(0, {{"lstm_/0.bias", "layer.0.bias"}, {"lstm_/*", "layer.*"}});
  ASSERT_TRUE(works(read()));
  EXPECT_EQ(digest(other), digest(model));
  with(0);
  auto report = filled(st_read_report_init);
  before = digest(other);
  EXPECT_TRUE(fails(ST_NOT_FOUND, read(&report), {"layer.0.weight", "4 missing", "4 unexpected"}));
  ASSERT_EQ(report.missing_count, 4);
  ASSERT_EQ(report.unexpected_count, 4);
  EXPECT_STREQ(report.missing[0], "layer.0.weight");
  EXPECT_EQ(std::string(report.unexpected[0]).substr(0, 6), "lstm_/");
  EXPECT_EQ(digest(other), before);
}

TEST_F(WeightsStream, AStarStandsForAnyTextBetweenOthers) {
  std::string& bytes = stream.bytes;
  for (size_t at; (at = bytes.find("layer.")) != std::string::npos;) bytes.replace(at, 6, "lstm_/");
  // The first match counts; "lstm_/0.weight" is too short for the first pattern, whose two sides would share the 0.
  with(0, {{"lstm_/0*0.weight", "none.*"}, {"lstm_/*.weight", "layer.*.weight"}, {"lstm_/*bias", "layer.*bias"}});
  ASSERT_TRUE(works(read()));
  EXPECT_EQ(digest(other), digest(model));
}

TEST_F(WeightsStream, RenamesThatCannotBeAreRefused) {
  for (const auto& [from, to] :
       {std::pair{"*.a", "b"}, std::pair{"a*", "b"}, std::pair{"a", "b*"}, std::pair{"", "b"}, std::pair{"a**", "b*"}}) {
    with(0, {{from, to}});
    EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, read(), {"rename"})) << from << " to " << to;
  }
  with(0, {{nullptr, "b"}});
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, read(), {"from is NULL"}));
  with(1, {{"layer.1.bias", "layer.0.bias"}});
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, read(), {"two tensors", "layer.0.bias", "layer.1.bias"}));
  EXPECT_EQ(digest(other), before);
}

// Tensors that are not requested are neither read nor missing nor unexpected, and stay unchanged.
TEST_F(WeightsStream, NamesAreAskedForByPattern) {
  const char* const wanted[] = {"layer.0.*", "none.of.?hem"};
  with(0);
  options.names = wanted;
  options.name_count = 2;
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, read(), {"none.of.?hem"}));
  EXPECT_EQ(digest(other), before);
  stream.at = 0;
  options.name_count = 1;
  auto report = filled(st_read_report_init);
  ASSERT_TRUE(works(read(&report)));
  EXPECT_EQ(report.read, 2);
  EXPECT_EQ(report.missing_count + report.unexpected_count, 0);
  for (const char* name : {"layer.0.weight", "layer.1.weight"}) {
    std::vector<float> first(6), second(6), mine(6);
    const HeldModel untouched = mlp(2);
    const int64_t dims[] = {name == std::string("layer.0.weight") ? 2 : 3, name == std::string("layer.0.weight") ? 3 : 2};
    const auto get = [&](st_model* from, std::vector<float>& to) {
      const st_view view = {ST_F32, 2, dims, nullptr, to.data(), 24};
      EXPECT_TRUE(works(st_model_get(from, name, &view)));
    };
    get(model, first);
    get(untouched, second);
    get(other, mine);
    EXPECT_EQ(mine, name == std::string("layer.0.weight") ? first : second) << name;
  }
}

TEST_F(WeightsStream, PartialTakesWhatFitsByName) {
  const std::string header = R"({"extra":{"dtype":"I64","shape":[2],"data_offsets":[0,16]},)"
                             R"("layer.1.bias":{"dtype":"F64","shape":[2],"data_offsets":[16,32]}})";
  stream.bytes = safetensors(header, 32);
  const double values[] = {0.5, -2};
  std::memcpy(stream.bytes.data() + stream.bytes.size() - 16, values, 16);
  EXPECT_TRUE(fails(ST_NOT_FOUND, read(), {"layer.0.weight"}));
  EXPECT_EQ(digest(other), before);
  with(1);
  auto report = filled(st_read_report_init);
  ASSERT_TRUE(works(read(&report)));
  EXPECT_EQ(report.read, 1);
  ASSERT_EQ(report.missing_count, 3);
  ASSERT_EQ(report.unexpected_count, 1);
  EXPECT_STREQ(report.unexpected[0], "extra");
  float bias[2];
  const int64_t dims[] = {2};
  const st_view view = {ST_F32, 1, dims, nullptr, bias, sizeof bias};
  ASSERT_TRUE(works(st_model_get(other, "layer.1.bias", &view)));
  EXPECT_EQ(bias[0], 0.5F);
  EXPECT_EQ(bias[1], -2.0F);
  with(1);
  stream.bytes = safetensors(R"({"layer.1.bias":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}})", 8);
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, read(), {"layer.1.bias", "[1, 2]", "[2]"})) << "partial applies to names, not shapes";
}

TEST_F(WeightsStream, CutAnywhereChangesNothing) {
  const std::string whole = stream.bytes;
  for (size_t length = 0; length < whole.size(); ++length) expect_refused(whole.substr(0, length), ST_CORRUPT, {"the stream"});
  stream.bytes = whole;
  stream.at = 0;
  EXPECT_TRUE(works(read()));
}

// Other malformed headers: Safetensors.RefusesHostileHeaders.
TEST_F(WeightsStream, ThatLiesIsRefused) {
  std::string endless = stream.bytes;
  std::memset(endless.data(), 0xFF, 8);
  expect_refused(endless, ST_CORRUPT, {"header"});
  const uint64_t large = 90'000'000;
  std::memcpy(endless.data(), &large, 8);
  expect_refused(endless, ST_CORRUPT, {"ends in its header"});
  expect_refused(safetensors(R"({"layer.0.bias":{"dtype":"I32","shape":[3],"data_offsets":[0,12]}})", 12), ST_INVALID_ARGUMENT,
                 {"F32, F64, BF16 or F16"});
}

TEST_F(WeightsStream, ACallbackThatFailsOrLiesEndsTheCall) {
  const auto whole = static_cast<int64_t>(stream.bytes.size());
  for (const int64_t lie : {int64_t{-1}, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max(), whole + 1}) {
    stream.at = 0;
    stream.lie = lie;
    EXPECT_TRUE(fails(ST_CALLBACK, read(), {"st_model_read", "but reported"})) << lie;
  }
  stream.lie = 0;
  for (stream.fail_after = 0; stream.fail_after < whole; stream.fail_after += 50) {
    stream.at = 0;
    EXPECT_TRUE(fails(ST_CALLBACK, read(), {"read returned 10"}));
    Stream out;
    out.fail_after = stream.fail_after;
    EXPECT_TRUE(fails(ST_CALLBACK, st_model_write(model, Stream::write, &out), {"write returned 14"}));
  }
  EXPECT_EQ(digest(other), before);
}

TEST_F(WeightsStream, ACallbackThatCallsBackInFindsTheModelBusy) {
  Stream out;
  out.call_back_into = model;
  ASSERT_TRUE(works(st_model_write(model, Stream::write, &out)));
  EXPECT_GT(out.calls, 1);
  EXPECT_EQ(out.bytes, stream.bytes);
  stream.call_back_into = other;
  ASSERT_TRUE(works(read()));
  EXPECT_EQ(digest(other), digest(model));
}

TEST_F(WeightsStream, GivesLargeTensorsInPieces) {
  const char* json = R"({"inputs": 700, "hidden": [500], "outputs": 1})";  // 1.4 MB in one tensor
  const auto large = hold<HeldModel>(st_model_builtin, context, "mlp", json, 1);
  const auto copy = hold<HeldModel>(st_model_builtin, context, "mlp", json, 2);
  int64_t most = 0;
  const auto measure = [](void* user, const void*, int64_t count) {
    auto& largest = *static_cast<int64_t*>(user);
    largest = std::max(largest, count);
    return st_status{ST_OK};
  };
  ASSERT_TRUE(works(st_model_write(large, measure, &most)));
  EXPECT_LE(most, int64_t{1} << 18);
  Stream through;
  through.piece = 100'000;
  ASSERT_TRUE(works(st_model_write(large, Stream::write, &through)));
  ASSERT_TRUE(works(st_model_read(copy, Stream::read, &through, nullptr, nullptr)));
  EXPECT_EQ(digest(copy), digest(large));
}

}  // namespace
