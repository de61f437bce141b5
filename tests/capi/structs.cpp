// Structs that grow: a program may be older or newer than the library.
#include <cstring>

#include "small_run.h"

namespace {

using namespace st::test;

/// A struct as a newer header would declare it: 16 bytes longer.
template <class Struct>
struct Newer {
  Struct known;
  uint8_t tail[16];
};

constexpr size_t kFirstMemoryStats = offsetof(st_memory_stats, peak_bytes);
constexpr size_t kFirstReadOptions = offsetof(st_read_options, name_count);
constexpr size_t kFirstContextOptions = offsetof(st_context_options, late_parameters);
constexpr size_t kFirstStepReport = offsetof(st_step_report, save_error);

template <class Struct>
void expect_sizes_checked(st_status (*init)(Struct*, size_t), size_t first = sizeof(Struct)) {
  Newer<Struct> made;
  std::memset(&made, 0xAB, sizeof made);
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, init(nullptr, sizeof(Struct)), {"_init", "NULL"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, init(&made.known, 0), {"_init", "size is 0"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, init(&made.known, first - 1), {"sizeof"}));
  EXPECT_TRUE(fails(ST_UNSUPPORTED, init(&made.known, size_t{1} << 40), {"_init"}));
  EXPECT_EQ(made.known.struct_size, 0xABABABABU) << "a failed init must not write";

  EXPECT_TRUE(works(init(&made.known, sizeof made)));
  EXPECT_EQ(made.known.struct_size, sizeof made);
  for (const uint8_t byte : made.tail) EXPECT_EQ(byte, 0) << "fields that this library does not know are zero";

  std::memset(&made, 0xAB, sizeof made);
  EXPECT_TRUE(works(init(&made.known, sizeof(Struct))));
  EXPECT_EQ(made.known.struct_size, sizeof(Struct));
  for (const uint8_t byte : made.tail) EXPECT_EQ(byte, 0xAB) << "init wrote beyond the given size";
}

TEST(Structs, AreInitializedToTheSizeGiven) {
  expect_sizes_checked(st_error_info_init);
  expect_sizes_checked(st_context_options_init, kFirstContextOptions);
  expect_sizes_checked(st_memory_stats_init, kFirstMemoryStats);
  expect_sizes_checked(st_parameter_info_init);
  expect_sizes_checked(st_read_options_init, kFirstReadOptions);
  expect_sizes_checked(st_read_report_init);
  expect_sizes_checked(st_predictor_options_init);
  expect_sizes_checked(st_value_info_init);
  expect_sizes_checked(st_op_callbacks_init);
  expect_sizes_checked(st_generate_options_init);
  expect_sizes_checked(st_step_report_init, kFirstStepReport);
  expect_sizes_checked(st_evaluation_init);
  expect_sizes_checked(st_checkpoint_options_init);
  expect_sizes_checked(st_load_report_init);
  expect_sizes_checked(st_save_progress_init);
  expect_sizes_checked(st_communicator_options_init);
  expect_sizes_checked(st_transport_callbacks_init);
  expect_sizes_checked(st_distributed_sampler_options_init);
  expect_sizes_checked(st_data_parallel_options_init);
  expect_sizes_checked(st_pipeline_callbacks_init);
  expect_sizes_checked(st_sharded_optimizer_options_init);
}

TEST(Structs, HaveTheDefaultsTheHeaderTells) {
  const auto options = filled(st_context_options_init);
  EXPECT_STREQ(options.device, "cpu");
  EXPECT_EQ(options.threads, 0);
  EXPECT_EQ(options.memory_limit, 0);
  EXPECT_EQ(options.log, nullptr);
  EXPECT_EQ(options.parallel, nullptr);
  const auto callbacks = filled(st_op_callbacks_init);
  EXPECT_EQ(callbacks.outputs, 1);
  EXPECT_EQ(callbacks.shape, nullptr);
  EXPECT_EQ(callbacks.forward, nullptr);
  EXPECT_EQ(callbacks.backward, nullptr);
  const auto generate = filled(st_generate_options_init);
  EXPECT_EQ(generate.tokens, 200);
  EXPECT_EQ(generate.temperature, 0.8);
  EXPECT_EQ(generate.top_k, 40);
  EXPECT_EQ(generate.seed, 0);
}

/// `call` takes the struct as input or output. Tests the sizes that it must refuse and accept. first: the struct's size in its first
/// header.
template <class Struct, class Call>
void expect_taken(st_status (*init)(Struct*, size_t), const Call& call, size_t first = sizeof(Struct)) {
  Newer<Struct> made;
  for (const uint32_t size : {0U, 4U, static_cast<uint32_t>(first) - 1}) {
    ASSERT_TRUE(works(init(&made.known, sizeof made)));
    made.known.struct_size = size;
    EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, call(&made.known), {"struct_size", "_init"})) << size;
  }
  ASSERT_TRUE(works(init(&made.known, sizeof made)));
  made.known.struct_size = 0xFFFFFFFF;
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, call(&made.known), {"struct_size"}));

  ASSERT_TRUE(works(init(&made.known, sizeof made)));
  made.tail[15] = 1;
  EXPECT_TRUE(fails(ST_UNSUPPORTED, call(&made.known), {"older than the program"}));
  EXPECT_EQ(made.tail[15], 1);

  ASSERT_TRUE(works(init(&made.known, sizeof made)));
  EXPECT_TRUE(works(call(&made.known))) << "an unknown tail of zeros is accepted";
  EXPECT_EQ(made.known.struct_size, sizeof made) << "struct_size is unchanged";
  for (const uint8_t byte : made.tail) EXPECT_EQ(byte, 0);
}

TEST(Structs, FromAnOlderOrNewerProgramAreToldApart) {
  const std::string text = text_file("structs.txt", 1000);
  SmallRun run(text);
  const auto predictor = hold<HeldPredictor>(st_predictor_create, run.model, nullptr);
  const int32_t prompt = 1;
  const auto stop = [](void*, int32_t) { return st_status{ST_CANCELLED}; };

  expect_taken(
      st_context_options_init,
      [&](st_context_options* options) {
        HeldContext context;
        return st_context_create(options, context.out());
      },
      kFirstContextOptions);
  expect_taken(st_error_info_init, st_last_error_info);
  expect_taken(
      st_memory_stats_init, [&](st_memory_stats* stats) { return st_context_memory(run.context, stats); }, kFirstMemoryStats);
  expect_taken(st_parameter_info_init, [&](st_parameter_info* info) { return st_model_parameter(run.model, 0, info); });
  expect_taken(st_predictor_options_init, [&](st_predictor_options* options) {
    HeldPredictor made;
    return st_predictor_create(run.model, options, made.out());
  });
  const auto nothing = [](void* bytes, void* room, int64_t most, int64_t* count) {  // a header without tensors
    auto& left = *static_cast<std::string*>(bytes);
    *count = std::min<int64_t>(most, static_cast<int64_t>(left.size()));
    std::memcpy(room, left.data(), static_cast<size_t>(*count));
    left.erase(0, static_cast<size_t>(*count));
    return st_status{ST_OK};
  };
  std::string stream;
  auto partial = filled(st_read_options_init);
  partial.partial = 1;
  const auto read = [&](const st_read_options* options, st_read_report* report) {
    stream = std::string("\x08\0\0\0\0\0\0\0{}      ", 16);
    return st_model_read(run.model, nothing, &stream, options, report);
  };
  expect_taken(st_read_report_init, [&](st_read_report* report) { return read(&partial, report); });
  expect_taken(
      st_read_options_init,
      [&](st_read_options* options) {
        options->partial = 1;
        return read(options, nullptr);
      },
      kFirstReadOptions);
  expect_taken(st_op_callbacks_init, [](st_op_callbacks* callbacks) {
    const auto context = hold<HeldContext>(st_context_create, nullptr);
    callbacks->shape = [](void*, int32_t, const st_op_type*, int32_t, st_op_type*) { return st_status{ST_OK}; };
    callbacks->forward = [](void*, int32_t, const st_view*, int32_t, const st_view*) { return st_status{ST_OK}; };
    return st_op_register(context, "own", callbacks, nullptr);
  });
  SineRun sine;
  expect_taken(st_value_info_init, [&](st_value_info* info) { return st_graph_value(sine.graph, 1, info); });
  expect_taken(st_generate_options_init,
               [&](st_generate_options* options) { return st_predictor_generate(predictor, 1, &prompt, options, stop, nullptr); });
  expect_taken(st_evaluation_init, [&](st_evaluation* evaluation) { return st_trainer_evaluate(run.trainer, run.data, evaluation); });
  expect_taken(
      st_step_report_init, [&](st_step_report* report) { return st_trainer_step(run.trainer, 0, nullptr, report); }, kFirstStepReport);
}

TEST(Structs, ThatAreWrongStopAStepBeforeItHappens) {
  SineRun run;
  const std::string before = run.digest();
  auto report = filled(st_step_report_init);
  report.struct_size = 8;
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, run.step(&report), {"st_trainer_step", "struct_size is 8", "st_step_report_init"}));
  EXPECT_EQ(run.digest(), before);
}

}  // namespace
