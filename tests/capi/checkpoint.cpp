// Checkpoints of a host with its own loop: saves and loads its named buffers, of any type and stride.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <thread>

#include "checkpoint_folder.h"
#include "dlpack_of_others.h"
#include "host_arrays.h"

namespace {

using namespace st::test;

/// An array of any type, with bytes drawn from a seed, and a view of it.
struct Buffer {
  Buffer(const char* called, st_dtype type, int64_t width, std::vector<int64_t> shape, uint32_t seed)
      : name(called), dims(std::move(shape)), dtype(type) {
    int64_t elements = 1;
    for (const int64_t dim : dims) elements *= dim;
    bytes.resize(static_cast<size_t>(elements * width));
    for (unsigned char& byte : bytes) byte = static_cast<unsigned char>((seed = seed * 1664525U + 1013904223U) >> 24U);
    if (type == ST_BOOL)
      for (unsigned char& byte : bytes) byte &= 1U;
  }
  st_named_view view() {
    return {name,
            {dtype, static_cast<int32_t>(dims.size()), dims.data(), nullptr, bytes.empty() ? nullptr : bytes.data(),
             static_cast<int64_t>(bytes.size())}};
  }

  const char* name;
  std::vector<int64_t> dims;
  st_dtype dtype;
  std::vector<unsigned char> bytes;
};

std::vector<Buffer> buffers_of_all_types(uint32_t seed) {
  std::vector<Buffer> made;
  const auto add = [&](const char* name, st_dtype type, int64_t width, std::vector<int64_t> shape) {
    made.emplace_back(name, type, width, std::move(shape), seed++);
  };
  add("f32", ST_F32, 4, {3, 5});
  add("f64", ST_F64, 8, {7});
  add("bf16", ST_BF16, 2, {2, 2, 2});
  add("f16", ST_F16, 2, {9});
  add("i32", ST_I32, 4, {4});
  add("i64", ST_I64, 8, {2, 3});
  add("u8", ST_U8, 1, {11});
  add("bool", ST_BOOL, 1, {5});
  add("a number", ST_F64, 8, {});
  add("nothing", ST_F32, 4, {3, 0, 2});
  add("larger than a block", ST_U8, 1, {3 * 1024 * 1024 + 5});
  return made;
}

std::vector<st_named_view> views_of(std::vector<Buffer>& buffers) {
  std::vector<st_named_view> views;
  for (Buffer& buffer : buffers) views.push_back(buffer.view());
  return views;
}

class CCheckpoint : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(works(st_context_create(nullptr, context_.out())));
    ASSERT_TRUE(works(st_checkpoint_create(context_, folder_.c_str(), nullptr, checkpoint_.out())));
  }
  st_status save(int64_t step, FloatArray& values, const char* metadata = nullptr, st_pending** pending = nullptr) {
    const st_named_view view = {"values", values.view()};
    return st_checkpoint_save(checkpoint_, step, 1, &view, metadata, pending);
  }
  st_status load(FloatArray& values, const char* name = nullptr, st_load_report* report = nullptr) {
    const st_named_view view = {"values", values.view()};
    return st_checkpoint_load(checkpoint_, name, 1, &view, nullptr, report);
  }

  CheckpointFolder folder_;
  HeldContext context_;
  HeldCheckpoint checkpoint_;
};

TEST_F(CCheckpoint, BringsBackEveryTypeBitByBit) {
  std::vector<Buffer> saved = buffers_of_all_types(1), loaded = buffers_of_all_types(1000);
  const auto from = views_of(saved), to = views_of(loaded);
  auto report = filled(st_load_report_init);
  ASSERT_TRUE(works(
      st_checkpoint_save(checkpoint_, 120, std::ssize(from), from.data(), R"({"who":"me","n":3,"yes":true,"a \"b\"\\\t":"c"})", nullptr)));
  ASSERT_TRUE(works(st_checkpoint_load(checkpoint_, nullptr, std::ssize(to), to.data(), nullptr, &report)));
  for (size_t i = 0; i < saved.size(); ++i) EXPECT_EQ(saved[i].bytes, loaded[i].bytes) << saved[i].name;
  EXPECT_EQ(report.step, 120);
  EXPECT_STREQ(report.name, "step-00000120");
  EXPECT_STREQ(report.metadata, R"({"a \"b\"\\\t":"c","n":"3","who":"me","yes":"true"})");
  EXPECT_EQ(report.read, std::ssize(from));
  EXPECT_EQ(report.missing_count + report.unexpected_count + report.skipped_count + report.changed_count, 0);
}

TEST_F(CCheckpoint, TakesAndFillsStridesAndOddAddresses) {
  // A transposed matrix, every second element, a row with stride 0, and an array at an odd address.
  std::vector<float> matrix(6), columns(8);
  std::iota(matrix.begin(), matrix.end(), 1.0F);
  std::iota(columns.begin(), columns.end(), 10.0F);
  float same = 7;
  unsigned char odd[9] = {0};
  const float pair[2] = {1.5F, -2.5F};
  std::memcpy(odd + 1, pair, sizeof pair);
  const int64_t transposed[] = {3, 2}, by_column[] = {1, 3}, four[] = {4}, by_two[] = {2}, none[] = {0}, two[] = {2};
  const st_named_view from[] = {{"transposed", {ST_F32, 2, transposed, by_column, matrix.data(), 24}},
                                {"every second", {ST_F32, 1, four, by_two, columns.data(), 32}},
                                {"the same", {ST_F32, 1, four, none, &same, 4}},
                                {"odd", {ST_F32, 1, two, nullptr, odd + 1, 8}}};
  ASSERT_TRUE(works(st_checkpoint_save(checkpoint_, 1, 4, from, nullptr, nullptr)));

  std::vector<float> flat(6), spread(8, -1), four_times(4);
  unsigned char elsewhere[11] = {0};
  const st_named_view to[] = {{"transposed", {ST_F32, 2, transposed, nullptr, flat.data(), 24}},
                              {"every second", {ST_F32, 1, four, by_two, spread.data(), 32}},
                              {"the same", {ST_F32, 1, four, nullptr, four_times.data(), 16}},
                              {"odd", {ST_F32, 1, two, nullptr, elsewhere + 3, 8}}};
  ASSERT_TRUE(works(st_checkpoint_load(checkpoint_, nullptr, 4, to, nullptr, nullptr)));
  EXPECT_EQ(flat, (std::vector<float>{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(spread, (std::vector<float>{10, -1, 12, -1, 14, -1, 16, -1}));
  EXPECT_EQ(four_times, (std::vector<float>(4, 7)));
  EXPECT_EQ(std::memcmp(elsewhere + 3, pair, sizeof pair), 0);
}

// 1 + 2^-9 rounds to 1 in bf16; 3e38 becomes infinity in f16; f64 holds every f32.
TEST_F(CCheckpoint, TakesAndFillsTensorsOfDlpack) {
  const std::vector<float> wanted = {1, 2, 3, 4, 5, 6};
  std::vector<float> values = wanted;
  int64_t dims[] = {3, 2}, by_column[] = {1, 3};
  bool is_given_back = false;
  DLManagedTensor theirs{{values.data(), {1, 0}, 2, {2, 32, 1}, dims, by_column, 0}, &is_given_back, [](DLManagedTensor* self) {
                           *static_cast<bool*>(self->manager_ctx) = true;
                         }};
  auto tensor = hold<HeldTensor>(st_tensor_from_dlpack, context_, &theirs);
  st_named_view view{"of another library", {}};
  ASSERT_TRUE(works(st_tensor_view(tensor, &view.view)));
  const auto pending = hold<HeldPending>(st_checkpoint_save, checkpoint_, 1, 1, &view, nullptr);
  std::ranges::fill(values, 0.0F);
  ASSERT_TRUE(works(st_pending_wait(pending, -1)));
  ASSERT_TRUE(works(st_checkpoint_load(checkpoint_, nullptr, 1, &view, nullptr, nullptr)));
  EXPECT_EQ(values, wanted);
  std::vector<float> rows(6);
  st_named_view plain{"of another library", {ST_F32, 2, dims, nullptr, rows.data(), 24}};
  ASSERT_TRUE(works(st_checkpoint_load(checkpoint_, nullptr, 1, &plain, nullptr, nullptr)));
  EXPECT_EQ(rows, (std::vector<float>{1, 4, 2, 5, 3, 6})) << "row by row, however it lay";
  tensor.reset();
  EXPECT_TRUE(is_given_back);
}

TEST_F(CCheckpoint, ConvertsBetweenFloatingTypes) {
  FloatArray saved{{1 + 0x1p-9F, 3e38F, -0.5F}};
  ASSERT_TRUE(works(save(0, saved)));
  const int64_t dims[] = {3};
  double wide[3] = {};
  uint16_t brain[3] = {}, half[3] = {};
  const auto into = [&](st_dtype dtype, void* data, int64_t bytes) {
    const st_named_view view = {"values", {dtype, 1, dims, nullptr, data, bytes}};
    return st_checkpoint_load(checkpoint_, "step-00000000", 1, &view, nullptr, nullptr);
  };
  ASSERT_TRUE(works(into(ST_F64, wide, sizeof wide)));
  ASSERT_TRUE(works(into(ST_BF16, brain, sizeof brain)));
  ASSERT_TRUE(works(into(ST_F16, half, sizeof half)));
  EXPECT_EQ(wide[0], 1 + 0x1p-9);
  EXPECT_EQ(wide[1], static_cast<double>(3e38F));
  EXPECT_EQ(brain[0], 0x3F80);
  EXPECT_EQ(half[1], 0x7C00);
  EXPECT_EQ(half[2], 0xB800);
}

TEST_F(CCheckpoint, APendingSaveHasTheValuesOfItsCall) {
  FloatArray values{std::vector<float>(300000, 1)}, back{std::vector<float>(300000)};
  for (int64_t step = 1; step <= 3; ++step) {
    HeldPending pending;
    values.values.assign(values.values.size(), static_cast<float>(step));
    ASSERT_TRUE(works(save(step, values, nullptr, pending.out())));
    values.values.assign(values.values.size(), -1);
    ASSERT_TRUE(works(st_pending_wait(pending, -1)));
    ASSERT_TRUE(works(load(back)));
    EXPECT_EQ(back.values, std::vector<float>(300000, static_cast<float>(step)));
  }
  const auto progress = filled(st_save_progress_init, st_checkpoint_progress, checkpoint_);
  EXPECT_EQ(progress.saved, 3);
  EXPECT_EQ(progress.failed, 0);
  EXPECT_EQ(progress.saved_step, 3);
  EXPECT_EQ(progress.bytes_all, 0) << "no save is running";
  EXPECT_GT(progress.blocked_seconds, 0);
  EXPECT_GT(progress.write_seconds, 0);
}

TEST_F(CCheckpoint, APendingHandleMayGoBeforeItsSaveAndTheCheckpointBeforeBoth) {
  FloatArray values{{3, 4}}, back{{0, 0}};
  HeldPending kept;
  st_pending* dropped = nullptr;
  ASSERT_TRUE(works(save(1, values, nullptr, &dropped)));
  ASSERT_TRUE(works(st_pending_destroy(dropped)));
  ASSERT_TRUE(works(save(2, values, nullptr, kept.out())));
  checkpoint_.reset();
  context_.reset();
  ASSERT_TRUE(works(st_pending_wait(kept, -1)));
  ASSERT_TRUE(works(st_context_create(nullptr, context_.out())));
  ASSERT_TRUE(works(st_checkpoint_create(context_, folder_.c_str(), nullptr, checkpoint_.out())));
  ASSERT_TRUE(works(load(back, "step-00000001")));
  ASSERT_TRUE(works(load(back, "step-00000002")));
  EXPECT_EQ(back.values, values.values);
}

TEST_F(CCheckpoint, KeepsWhatTheOptionsSay) {
  auto options = filled(st_checkpoint_options_init);
  options.keep_last = 2;
  options.keep_every = 4;
  options.keep_best = 1;
  options.best = "loss";
  checkpoint_.reset();
  ASSERT_TRUE(works(st_checkpoint_create(context_, folder_.c_str(), &options, checkpoint_.out())));
  FloatArray values{{1}};
  for (int64_t step = 1; step <= 9; ++step) {
    const std::string metadata = R"({"loss": )" + std::to_string(step == 3 ? 0.5 : 2.0 + static_cast<double>(step)) + "}";
    ASSERT_TRUE(works(save(step, values, metadata.c_str())));
  }
  const std::string json = text_of(st_checkpoint_list, checkpoint_);
  EXPECT_EQ(json, R"([{"name":"step-00000009","step":9,"problem":null},{"name":"step-00000008","step":8,"problem":null},)"
                  R"({"name":"step-00000004","step":4,"problem":null},{"name":"step-00000003","step":3,"problem":null}])");
}

// A damaged checkpoint is skipped and the report gives the reason. Requested by name, it is refused and nothing changes.
TEST_F(CCheckpoint, FallsBackToTheNewestThatIsWhole) {
  FloatArray values{{1, 2}}, back{{-1, -1}};
  ASSERT_TRUE(works(save(1, values)));
  values.values = {3, 4};
  ASSERT_TRUE(works(save(2, values)));
  folder_.spoil("step-00000002/tensors.safetensors");
  EXPECT_TRUE(fails(ST_CORRUPT, load(back, "step-00000002"), {"tensors.safetensors", "values", "block 0"}));
  const auto info = last_error();
  EXPECT_STREQ(info.tensor, "values");
  EXPECT_NE(std::string(info.file).find("step-00000002/tensors.safetensors"), std::string::npos) << info.file;
  EXPECT_EQ(back.values, (std::vector<float>{-1, -1}));
  auto report = filled(st_load_report_init);
  ASSERT_TRUE(works(load(back, nullptr, &report)));
  EXPECT_EQ(back.values, (std::vector<float>{1, 2}));
  EXPECT_EQ(report.step, 1);
  ASSERT_EQ(report.skipped_count, 1);
  EXPECT_EQ(std::string(report.skipped[0]).rfind("step-00000002: ", 0), 0U) << report.skipped[0];

  folder_.spoil("step-00000001/manifest.json", 9);
  EXPECT_TRUE(fails(ST_CORRUPT, load(back), {"none of the 2", "step-00000002", "step-00000001", "manifest.json"}));
  EXPECT_EQ(back.values, (std::vector<float>{1, 2}));
}

// Each byte is read once. Whole checkpoints load as well; damage is still reported, and the older checkpoint overwrites what was read.
TEST_F(CCheckpoint, OverwritesViewsWhenItMay) {
  std::vector<float> values(1 << 20), back(1 << 20);
  const int64_t dims[] = {1024, 1024}, columns[] = {1, 1024};
  const st_named_view from = {"values", {ST_F32, 2, dims, nullptr, values.data(), 4 << 20}};
  const st_named_view to = {"values", {ST_F32, 2, dims, columns, back.data(), 4 << 20}};
  auto options = filled(st_read_options_init);
  options.overwrite = 1;
  for (const float step : {1.0F, 2.0F}) {
    std::iota(values.begin(), values.end(), step);
    ASSERT_TRUE(works(st_checkpoint_save(checkpoint_, static_cast<int64_t>(step), 1, &from, nullptr, nullptr)));
    ASSERT_TRUE(works(st_checkpoint_load(checkpoint_, nullptr, 1, &to, &options, nullptr)));
    EXPECT_EQ(back[1], step + 1024) << "transposed";
    EXPECT_EQ(back[1024], step + 1);
  }
  folder_.spoil("step-00000002/tensors.safetensors", 3 << 20);
  EXPECT_TRUE(fails(ST_CORRUPT, st_checkpoint_load(checkpoint_, "step-00000002", 1, &to, &options, nullptr), {"values", "block"}));
  ASSERT_TRUE(works(st_checkpoint_load(checkpoint_, nullptr, 1, &to, &options, nullptr)));
  EXPECT_EQ(back.front(), 1);
  EXPECT_EQ(back.back(), 1 << 20);
}

TEST_F(CCheckpoint, LoadsSomeByNameAndUnderOtherNames) {
  FloatArray a{{1}}, b{{2}}, c{{3}};
  const st_named_view from[] = {{"net.a", a.view()}, {"net.b", b.view()}, {"state.c", c.view()}};
  ASSERT_TRUE(works(st_checkpoint_save(checkpoint_, 5, 3, from, nullptr, nullptr)));
  FloatArray x{{0}}, y{{0}};
  auto options = filled(st_read_options_init);
  auto report = filled(st_load_report_init);
  const st_rename renames[] = {{"net.*", "mine.*"}};
  options.renames = renames;
  options.rename_count = 1;
  const st_named_view to[] = {{"mine.a", x.view()}, {"mine.d", y.view()}};
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_checkpoint_load(checkpoint_, nullptr, 2, to, &options, &report), {"mine.d", "1 missing"}));
  EXPECT_EQ(x.values[0], 0);
  ASSERT_EQ(report.missing_count, 1);
  EXPECT_STREQ(report.missing[0], "mine.d");
  ASSERT_EQ(report.unexpected_count, 2);
  EXPECT_STREQ(report.unexpected[0], "net.b");
  EXPECT_STREQ(report.unexpected[1], "state.c");

  options.partial = 1;
  ASSERT_TRUE(works(st_checkpoint_load(checkpoint_, nullptr, 2, to, &options, &report)));
  EXPECT_EQ(x.values[0], 1);
  EXPECT_EQ(report.read, 1);
  EXPECT_EQ(report.missing_count, 1);

  const char* const names[] = {"mine.?"};
  options.partial = 0;
  options.names = names;
  options.name_count = 1;
  FloatArray z{{9}};
  const st_named_view some[] = {{"mine.a", x.view()}, {"mine.b", y.view()}, {"left.alone", z.view()}};
  ASSERT_TRUE(works(st_checkpoint_load(checkpoint_, nullptr, 3, some, &options, &report))) << "state.c and left.alone were not requested";
  EXPECT_EQ(y.values[0], 2);
  EXPECT_EQ(z.values[0], 9);
  EXPECT_EQ(report.read, 2);
  EXPECT_EQ(report.missing_count + report.unexpected_count, 0);
}

TEST_F(CCheckpoint, IsListedInspectedVerifiedAndHashed) {
  FloatArray values{{1, 2, 3}};
  const char *json = "", *hex = "";
  EXPECT_EQ(text_of(st_checkpoint_list, checkpoint_), "[]");
  ASSERT_TRUE(works(save(7, values, R"({"note":"first"})")));
  ASSERT_TRUE(works(st_checkpoint_inspect(checkpoint_, nullptr, &json)));
  for (const char* word : {R"("step":7)", R"("note":"first")", R"("values")", "tensors.safetensors", R"("step-00000007")"})
    EXPECT_NE(std::string(json).find(word), std::string::npos) << word << " in " << json;
  EXPECT_EQ(text_of(st_checkpoint_verify, checkpoint_, "step-00000007"), R"({"name":"step-00000007","problems":[]})");
  ASSERT_TRUE(works(st_checkpoint_hash(checkpoint_, nullptr, &hex)));
  EXPECT_EQ(std::strlen(hex), 32U);
  const std::string first = hex;
  values.values[1] = 5;
  ASSERT_TRUE(works(save(8, values)));
  EXPECT_NE(text_of(st_checkpoint_hash, checkpoint_, nullptr), first);
  folder_.spoil("step-00000008/tensors.safetensors");
  EXPECT_EQ(text_of(st_checkpoint_hash, checkpoint_, nullptr), first) << "the newest whole checkpoint";
  ASSERT_TRUE(works(st_checkpoint_verify(checkpoint_, nullptr, &json)));
  for (const char* word : {R"("name":"step-00000008")", R"("tensor":"values")", R"("block":0)"})
    EXPECT_NE(std::string(json).find(word), std::string::npos) << word << " in " << json;
}

TEST_F(CCheckpoint, IsReshardedAndExported) {
  FloatArray values{std::vector<float>(5000)}, back{std::vector<float>(5000)};
  std::iota(values.values.begin(), values.values.end(), 0.0F);
  ASSERT_TRUE(works(save(3, values)));
  const char* hex = "";
  ASSERT_TRUE(works(st_checkpoint_hash(checkpoint_, nullptr, &hex)));
  const std::string hash = hex;
  const std::string three = folder_.path() + ".three", file = folder_.path() + ".safetensors";
  ASSERT_TRUE(works(st_checkpoint_reshard(checkpoint_, nullptr, three.c_str(), 3)));
  ASSERT_TRUE(works(st_checkpoint_export(checkpoint_, nullptr, file.c_str(), 1)));
  EXPECT_GT(std::filesystem::file_size(file), 20000U);
  auto options = filled(st_checkpoint_options_init);
  options.read_only = 1;
  const auto resharded = hold<HeldCheckpoint>(st_checkpoint_create, context_, three.c_str(), &options);
  EXPECT_EQ(text_of(st_checkpoint_hash, resharded, nullptr), hash);
  const st_named_view view = {"values", back.view()};
  ASSERT_TRUE(works(st_checkpoint_load(resharded, nullptr, 1, &view, nullptr, nullptr)));
  EXPECT_EQ(back.values, values.values);
  std::filesystem::remove_all(three);
  std::filesystem::remove(file);
}

TEST_F(CCheckpoint, OthersMayReadWhileOneSaves) {
  FloatArray values{{1}}, back{{0}};
  ASSERT_TRUE(works(save(1, values)));
  auto options = filled(st_checkpoint_options_init);
  options.read_only = 1;
  const auto reader = hold<HeldCheckpoint>(st_checkpoint_create, context_, folder_.c_str(), &options);
  const st_named_view view = {"values", back.view()};
  ASSERT_TRUE(works(st_checkpoint_load(reader, nullptr, 1, &view, nullptr, nullptr)));
  EXPECT_EQ(back.values[0], 1);
  values.values[0] = 2;
  ASSERT_TRUE(works(save(2, values)));
  ASSERT_TRUE(works(st_checkpoint_load(reader, nullptr, 1, &view, nullptr, nullptr)));
  EXPECT_EQ(back.values[0], 2) << "it reads the folder each time";
  EXPECT_TRUE(fails(ST_WRONG_STATE, st_checkpoint_save(reader, 3, 1, &view, nullptr, nullptr), {"read_only"}));
  EXPECT_TRUE(works(st_checkpoint_wait(reader, 0)));
}

}  // namespace
