// Training on a device whose memory the host cannot see has the cpu's bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <thread>

#include "apart_backend.h"
#include "base/digest.h"
#include "dataset_rows.h"
#include "delayed_backend.h"
#include "device_ranks.h"
#include "model/host_bytes.h"
#include "parts/host_optimizer.h"
#include "refusal.h"
#include "saved_trainer.h"
#include "train/generate.h"
#include "train/predictor.h"
#include "training.h"

namespace st {
namespace {

enum class Device { cpu, apart, eager, late, random, unrecorded };  // the last: late, and cannot record kernels
constexpr Device kDevices[] = {Device::apart, Device::eager, Device::late, Device::random, Device::unrecorded};

std::string name_of(Device device) {
  constexpr std::array kNames = {"cpu", "apart", "eager", "late", "random", "unrecorded"};
  return kNames[static_cast<size_t>(device)];
}

Order order_of(Device device) { return device == Device::eager ? Order::eager : device == Device::random ? Order::random : Order::late; }

std::shared_ptr<Context> context_of(Device device, Planted planted = Planted::nothing) {
  ContextOptions options{.threads = 2, .log = {}, .parallel = {}, .memory = {}};
  if (device == Device::apart)
    options.make_backend = [](const std::shared_ptr<MemorySource>& source) { return std::make_unique<ApartBackend>(source); };
  else if (device != Device::cpu)
    options.make_backend = [=](const std::shared_ptr<MemorySource>& source) {
      return std::make_unique<DelayedBackend>(make_cpu_backend(source), source, order_of(device), planted, device != Device::unrecorded);
    };
  return std::make_shared<Context>(options);
}

Training training_with(const std::vector<std::pair<const char*, const char*>>& keys) {
  Training training{.device = "cpu", .recipe = {.batch = 3}, .ignored = true};
  for (const auto& [key, value] : keys) training.recipe.set(key, value);
  return training;
}

std::shared_ptr<Model> model_on(Device device, const Training& training, Planted planted = Planted::nothing) {
  return std::make_shared<Model>(context_of(device, planted), build_gpt(training.options), 1);
}

std::unique_ptr<Trainer> trainer_on(Device device, const Training& training, bool with_data = true) {
  return training.trainer_of(model_on(device, training), with_data ? training.data() : nullptr);
}

/// Everything that a host reads of a run, in one text.
std::string told_by(Device device, const Training& training, Planted planted = Planted::nothing) {
  const auto model = model_on(device, training, planted);
  const auto of_model = training.trainer_of(model, training.data());
  Trainer& trainer = *of_model;
  std::string all;
  for (const double loss : losses_of(trainer, 4)) all += text(loss, " ");
  all += text(trainer.step().grad_norm, " ", trainer.evaluate(training.data()).loss, " ");
  std::vector<float> gradient(static_cast<size_t>(training.options.width));
  trainer.gradient("final_norm.gamma", plain_view("", DType::f32, {training.options.width}, gradient.data()));
  for (const float value : gradient) all += text(value, " ");
  const std::vector<int32_t> prompt = {1, 2, 3};
  for (const int32_t token : Generator(model).run(prompt, {.tokens = 6, .temperature = 1, .top_k = 0, .seed = 5})) all += text(token, " ");
  return all + trainer.state_digest();
}

using Keys = std::vector<std::pair<const char*, const char*>>;

const std::vector<Keys>& recipes() {
  static const std::vector<Keys> all = {
      {},
      {{"accumulate", "3"}, {"precision", "\"bf16\""}, {"dropout", "0.1"}},
      {{"precision", "\"fp16\""}, {"loss_scale_initial", "1e9"}, {"optimizer", "\"adamw-8bit\""}},  // skips
      {{"recompute", "\"blocks\""}, {"ema_decay", "0.9"}, {"clip", "0.1"}, {"accumulate", "2"}},
      {{"optimizer", "\"muon\""}, {"gradient_noise_scale", "true"}, {"accumulate", "2"}},
      {{"optimizer", "\"adafactor\""}, {"offload", "\"optimizer\""}, {"gradient_dtype", "\"bf16\""}},
  };
  return all;
}

TEST(Seam, ARunHasTheBitsOfTheCpu) {
  for (const Keys& keys : recipes()) {
    const Training training = training_with(keys);
    const std::string told = told_by(Device::cpu, training);
    for (const Device device : kDevices) EXPECT_EQ(told_by(device, training), told) << name_of(device) << ' ' << training.recipe.json();
  }
}

TEST(Seam, ARunFindsWhatDoesNotWait) {
  const Training training = training_with({{"accumulate", "80"}});  // more than pinned memory has room for
  const std::string told = told_by(Device::cpu, training);
  for (const Planted planted : {Planted::finish_does_not_wait, Planted::event_does_not_wait}) {
    std::string late;
    try {
      late = told_by(Device::late, training, planted);
    } catch (const Error& error) {
      late = error.message();
    }
    EXPECT_NE(late, told) << static_cast<int>(planted);
  }
}

TEST(Seam, WhatOneSavesTheOtherContinues) {
  const Training training = training_with({{"ema_decay", "0.9"}, {"precision", "\"bf16\""}});
  for (const Device first : {Device::cpu, Device::late}) {
    const ScratchFolder folder("seam");
    const auto saved = trainer_on(first, training), resumed = trainer_on(first == Device::cpu ? Device::late : Device::cpu, training);
    losses_of(*saved, 3);
    save(*saved, folder / "step-3");
    resume_from(folder / "step-3", *resumed);
    EXPECT_EQ(losses_of(*resumed, 2), losses_of(*saved, 2));
    EXPECT_EQ(resumed->state_digest(), saved->state_digest());
  }
}

TEST(Seam, AStepInSlicesAndAHostsBatchAreTheSame) {
  const Training training = training_with({{"accumulate", "2"}});
  const auto own = training.data();
  const Rows batch(*own, {1, 2, 3, 4});  // and a short micro-batch
  std::string of_cpu;
  for (const Device device : {Device::cpu, Device::apart, Device::eager, Device::late, Device::random}) {
    const auto trainer = trainer_on(device, training, false);
    trainer->step(batch.views);
    int64_t slices = 1;
    while (!trainer->advance(batch.views, 0)) ++slices;
    EXPECT_GT(slices, 2) << name_of(device);
    if (device == Device::cpu) of_cpu = trainer->state_digest();
    EXPECT_EQ(trainer->state_digest(), of_cpu) << name_of(device);
  }
}

TEST(Seam, AHostsOwnLossReadsTheOutputs) {
  const Training training = training_with({{"precision", "\"bf16\""}});
  const auto own = training.data();
  const Rows batch(*own, {1, 2, 3});
  std::vector<std::string> told;
  for (const Device device : {Device::cpu, Device::late, Device::random}) {
    const auto trainer = trainer_on(device, training, false);
    std::string all;
    for (int step = 0; step < 2; ++step) {
      std::vector<std::vector<float>> values;
      std::vector<HostView> gradients;
      for (const HostView& output : trainer->forward(batch.views)) {
        if (output.dtype != DType::f32) continue;
        const auto* from = static_cast<const float*>(output.data);
        std::vector<float>& to = values.emplace_back(from, from + output.shape.elements());
        for (const float value : to) all += text(value, " ");
        gradients.push_back(plain_view(output.name, DType::f32, output.shape, to.data()));
      }
      EXPECT_FALSE(gradients.empty());
      trainer->backward(gradients);
      all += text(trainer->apply().grad_norm, " ");
    }
    told.push_back(all + trainer->state_digest());
  }
  EXPECT_EQ(told[0], told[1]);
  EXPECT_EQ(told[0], told[2]);
}

/// The gradients of this loss are the outputs themselves; on a device neither comes to the host. An output is written after the host's
/// stream has read that of the step before.
TEST(Seam, AHostsOwnLossGetsOutputsInTheDevicesMemory) {
  const Training training = training_with({{"precision", "\"bf16\""}});
  const auto own = training.data();
  const Rows batch(*own, {1, 2, 3});
  std::vector<std::string> told;
  for (const Device device : {Device::cpu, Device::late, Device::random}) {
    const auto trainer = trainer_on(device, training, false);
    Context& context = trainer->model().context();
    Backend& backend = context.backend();
    const std::span<const HostView> all = trainer->forward(batch.views);
    HostView logits = *std::ranges::find(all, "logits", &HostView::name);
    const auto room = backend.allocate(logits.bytes(), MemoryRole::other), first = backend.allocate(logits.bytes(), MemoryRole::other);
    const auto stream = backend.is_host_memory() ? nullptr : backend.make_stream();
    logits.data = reinterpret_cast<void*>(room->data().at);
    if (stream) context.host_order().use(static_cast<int64_t>(reinterpret_cast<intptr_t>(stream.get())));
    logits.is_on_device = stream != nullptr;
    for (int step = 0; step < 2; ++step) {
      trainer->forward_into(batch.views, {&logits, 1});
      if (step == 0 && stream) stream->copy(first->data(), room->data(), logits.bytes());
      if (step == 0 && !stream) std::memcpy(backend.in_host(first->data()), logits.data, static_cast<size_t>(logits.bytes()));
      trainer->backward({&logits, 1});
      trainer->apply();
    }
    if (stream) stream->finish();
    Digest digest;
    for (const auto& of : {room.get(), first.get()})
      digest.update({HostBytes(backend, of->data(), of->size()).as(), static_cast<size_t>(of->size())});
    told.push_back(digest.hex() + trainer->state_digest());
  }
  EXPECT_EQ(told[0], told[1]);
  EXPECT_EQ(told[0], told[2]);
}

std::vector<float> logits_of(const std::shared_ptr<Model>& model, const Training& training) {
  Predictor predictor(model);
  std::vector<int32_t> tokens(static_cast<size_t>(training.options.context), 5);
  std::vector<float> logits(tokens.size() * static_cast<size_t>(training.options.vocabulary));
  const HostView in = plain_view("tokens", DType::i32, {1, training.options.context}, tokens.data());
  const HostView out = plain_view("logits", DType::f32, {1, training.options.context, training.options.vocabulary}, logits.data());
  predictor.run({&in, 1}, {&out, 1});
  predictor.refresh();
  return logits;
}

TEST(Seam, WeightsAreReadAndWrittenByName) {
  const Training training = training_with({});
  const auto model = model_on(Device::late, training), host = model_on(Device::cpu, training);
  std::vector<float> values(static_cast<size_t>(training.options.width), 2);
  for (const auto& each : {model, host})
    each->set(each->parameter_named("final_norm.gamma"), plain_view("", DType::f32, {training.options.width}, values.data()));
  EXPECT_EQ(weights_of(*model, "final_norm.gamma"), values);
  EXPECT_EQ(logits_of(model, training), logits_of(host, training));
}

TEST(Seam, ANaNIsFoundAndNamed) {
  Training training = training_with({{"find_nan", "true"}});
  const auto trainer = trainer_on(Device::late, training);
  Model& model = trainer->model();
  std::vector<float> values(static_cast<size_t>(training.options.width), std::numeric_limits<float>::infinity());
  model.set(model.parameter_named("final_norm.gamma"), plain_view("", DType::f32, {training.options.width}, values.data()));
  EXPECT_TRUE(refuses(Code::not_finite, {"final_norm"}, [&] { trainer->step(); }));
}

TEST(Seam, ABadTokenIsNamedAndNothingChanges) {
  const Training training = training_with({{"accumulate", "2"}});
  const auto own = training.data();
  Rows batch(*own, {1, 2, 3, 4, 5, 6});
  std::vector<std::string> messages;
  for (const Device device : {Device::cpu, Device::late, Device::random}) {
    const auto trainer = trainer_on(device, training, false);
    trainer->step(batch.views);
    const std::string before = trainer->state_digest();
    auto* const tokens = static_cast<int32_t*>(batch.views.front().data);
    const int32_t good = std::exchange(tokens[7], 100000);
    messages.push_back(refusal([&] { trainer->step(batch.views); }));
    tokens[7] = good;
    EXPECT_EQ(trainer->state_digest(), before) << name_of(device);
    trainer->step(batch.views);
  }
  EXPECT_NE(messages[0].find("token 100000"), std::string::npos) << messages[0];
  EXPECT_EQ(messages[1], messages[0]);
  EXPECT_EQ(messages[2], messages[0]);
}

/// A token or target out of range at `place`: every device names it as the cpu does, keeps the state, and makes the next step.
void expect_that_a_bad_number_stops_all(const Training& training, const Rows& batch, int32_t* place) {
  std::vector<std::string> told;
  for (const Device device : {Device::cpu, Device::eager, Device::late, Device::random}) {
    const auto trainer = trainer_on(device, training, false);
    trainer->step(batch.views);
    const std::string before = trainer->state_digest();
    const int32_t good = std::exchange(*place, 100000);
    const std::string message = refusal([&] { trainer->step(batch.views); });
    *place = good;
    EXPECT_TRUE(says(message, {"100000"}));
    EXPECT_EQ(trainer->state_digest(), before) << name_of(device);
    trainer->step(batch.views);
    told.push_back(message + trainer->state_digest());
    EXPECT_EQ(told.back(), told.front()) << name_of(device);
  }
}

TEST(Seam, ABadTokenOfOneRankStopsAllAndNothingChanges) {
  const std::vector<Keys> kinds = {{}, {{"reduce", "\"step\""}}, {{"overlap", "\"off\""}, {"clip", "0"}}, {{"zero", "2"}}};
  for (const Keys& keys : kinds) {
    Training training = training_with({{"ranks", "3"}, {"accumulate", "2"}});
    for (const auto& [key, value] : keys) training.recipe.set(key, value);
    const auto own = training.data();
    std::vector<int64_t> all(18);  // of two rounds
    std::iota(all.begin(), all.end(), 1);
    Rows batch(*own, all);
    // Rank 1's in the second round.
    expect_that_a_bad_number_stops_all(training, batch, static_cast<int32_t*>(batch.views.front().data) + training.options.context * 13);
  }
}

TEST(Seam, ARunOfStagesFindsWhatDoesNotWait) {
  const Training training = training_with({{"stages", "2"}, {"accumulate", "4"}});
  const auto told = [&](Device device, Planted planted) {
    const auto trainer = training.trainer_of(model_on(device, training, planted), training.data());
    return text(trainer->step().loss, " ", trainer->step().loss, " ") + trainer->state_digest();
  };
  const std::string of_cpu = told(Device::cpu, Planted::nothing);
  EXPECT_EQ(told(Device::late, Planted::nothing), of_cpu);
  for (const Planted planted : {Planted::event_is_early, Planted::stream_does_not_wait})
    EXPECT_NE(told(Device::late, planted), of_cpu) << static_cast<int>(planted);
}

/// A token that the first stage reads, or a target of the last one's.
TEST(Seam, ABadRowOfOneStageStopsAllAndNothingChanges) {
  Training training = training_with({{"ranks", "4"}, {"stages", "2"}, {"accumulate", "4"}, {"clip", "0"}});
  const auto own = training.data();
  std::vector<int64_t> all(24);
  std::iota(all.begin(), all.end(), 1);
  Rows batch(*own, all);
  for (const HostView& view : batch.views)
    expect_that_a_bad_number_stops_all(training, batch, static_cast<int32_t*>(view.data) + training.options.context * 10);
}

TEST(Seam, StagesThatAreCancelledAreUndoneOnAll) {
  const Training training = training_with({{"stages", "3"}, {"accumulate", "4"}});
  std::string of_cpu;
  for (const Device device : {Device::cpu, Device::late, Device::random}) {
    const auto trainer = trainer_on(device, training);
    trainer->step();
    const std::string before = trainer->state_digest();
    trainer->cancel();
    EXPECT_TRUE(is_error(error_of([&] { trainer->step(); }), Code::cancelled));
    EXPECT_EQ(trainer->state_digest(), before);
    trainer->step();
    if (device == Device::cpu) of_cpu = trainer->state_digest();
    EXPECT_EQ(trainer->state_digest(), of_cpu) << name_of(device);
  }
}

/// Each rank has a trainer of its own; all trainers have one context.
TEST(Seam, StagesOfAHostsGroupShareADevice) {
  constexpr int kRanks = 4;
  std::string of_cpu;
  std::vector<int64_t> copies;  // to the host, of the runs on the device
  const auto run = [&](Device device, const char* micro_batches) {
    const Training training = training_with({{"ranks", "4"}, {"stages", "2"}, {"schedule", "\"zb-v\""}, {"accumulate", micro_batches}});
    const auto context = context_of(device);
    std::array<std::string, kRanks> told;
    expect_none(on_ranks(kRanks, [&](DirectExchange& group) {
      Recipe recipe = training.recipe;
      recipe.device = "cpu";
      Trainer trainer(std::make_shared<Model>(context, build_gpt(training.options), 1), recipe, training.data(), PlanOptions(), &group);
      std::string& all = told[static_cast<size_t>(group.rank())];
      for (int step = 0; step < 3; ++step) {
        const StepReport report = trainer.step();
        all += text(report.loss, " ", report.grad_norm, " ");
      }
    }));
    for (const std::string& of_rank : told) EXPECT_EQ(of_rank, told[0]);
    if (device != Device::cpu) copies.push_back(static_cast<const DelayedBackend&>(context->backend()).counts().host_copies);
    return told[0];
  };
  for (const char* const micro_batches : {"4", "12"}) {
    of_cpu = run(Device::cpu, micro_batches);
    for (const Device device : {Device::late, Device::random}) EXPECT_EQ(run(device, micro_batches), of_cpu) << name_of(device);
  }
  for (const int64_t of_run : copies) EXPECT_EQ(of_run, copies[0]) << "it depends on the number of messages";
}

/// A stage that fails ends the group with its name, and its memory is not read after that.
TEST(Seam, StagesOfAHostsGroupNameTheOneThatFails) {
  Training training = training_with({{"ranks", "3"}, {"stages", "3"}, {"accumulate", "4"}});
  for (const Device device : {Device::cpu, Device::eager, Device::late, Device::random})
    for (const int fails : {0, 2}) {
      const auto context = context_of(device);
      const auto caught = on_ranks(3, [&](DirectExchange& group) {
        Recipe recipe = training.recipe;
        recipe.device = "cpu";
        Trainer trainer(std::make_shared<Model>(context, build_gpt(training.options), 1), recipe, nullptr, PlanOptions(), &group);
        const auto own = training.data();
        Rows batch(*own, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
        trainer.step(batch.views);
        if (group.rank() == fails)
          for (HostView& view : batch.views) static_cast<int32_t*>(view.data)[training.options.context * 5] = 100000;
        try {
          trainer.step(batch.views);
        } catch (const std::exception& why) {
          group.abort(why.what());  // as its caller must
          throw;
        }
      });
      for (int rank = 0; rank < 3; ++rank) {
        const Error error = error_of(caught[static_cast<size_t>(rank)]);
        EXPECT_TRUE(says(error.message(), {"100000"})) << name_of(device) << ", rank " << rank;
        if (rank == fails) continue;
        EXPECT_TRUE(is_error(error, Code::rank_failed, {text("rank ", fails)})) << name_of(device);
      }
      EXPECT_EQ(context->backend().allocated_bytes(), 0) << name_of(device);
    }
}

/// The copies to the host and the waits for the device in a step do not depend on the number of messages.
TEST(Seam, MessagesOfStagesDoNotGoThroughTheHost) {
  for (const Keys& keys : {Keys{{"schedule", "\"1f1b\""}}, Keys{{"schedule", "\"interleaved\""}, {"ranks", "4"}, {"zero", "1"}}}) {
    std::vector<std::pair<int64_t, int64_t>> of_steps;
    for (const char* const micro_batches : {"4", "8", "16"}) {
      Training training = training_with({{"stages", "2"}, {"accumulate", micro_batches}});
      for (const auto& [key, value] : keys) training.recipe.set(key, value);
      const auto trainer = trainer_on(Device::late, training);
      const DeviceCounts& counts = static_cast<const DelayedBackend&>(trainer->model().context().backend()).counts();
      trainer->step();
      const int64_t copies = counts.host_copies, finishes = counts.finishes;
      trainer->step();
      of_steps.emplace_back(counts.host_copies - copies, counts.finishes - finishes);
      EXPECT_EQ(of_steps.back(), of_steps.front()) << micro_batches;
    }
  }
}

TEST(Seam, AModelPredictsWhileItTrains) {
  const Training training = training_with({});
  std::vector<std::string> digests;
  for (const Device device : {Device::cpu, Device::late, Device::random}) {
    const auto model = model_on(device, training);
    const auto trainer = training.trainer_of(model, training.data());
    const std::vector<float> before = logits_of(model, training);
    std::thread other([&] {
      for (int i = 0; i < 3; ++i) EXPECT_EQ(logits_of(model, training).size(), before.size());
    });
    losses_of(*trainer, 3);
    other.join();
    EXPECT_NE(logits_of(model, training), before) << name_of(device);
    digests.push_back(trainer->state_digest());
  }
  EXPECT_EQ(digests[1], digests[0]);
  EXPECT_EQ(digests[2], digests[0]);
}

TEST(Seam, WhatIsGivenInPlaceIsRefusedByName) {
  for (const Device device : {Device::cpu, Device::apart}) {
    const auto context = context_of(device);
    const auto require = [&] { require_in_place(context->backend(), "st_tensor_create: the tensor's memory is given"); };
    if (device == Device::cpu) {
      EXPECT_NO_THROW(require());
    } else {
      EXPECT_TRUE(refuses(Code::unsupported, {"st_tensor_create: the tensor's memory is given in place", "memory of its own"}, require));
    }
  }
}

/// Their arrays are the host's, which computes with them.
TEST(Seam, PartsHaveTheBitsOfTheCpu) {
  const auto updated = [](Device device) {
    std::vector<float> values = {1, -2, 3, 0.5F}, gradients = {0.25F, 1, -3, 0};
    const HostView weight = plain_view("w", DType::f32, {4}, values.data()), gradient = plain_view("w", DType::f32, {4}, gradients.data());
    HostOptimizer adam(context_of(device), "{}", {&weight, 1});
    adam.step({&gradient, 1});
    return values;
  };
  EXPECT_EQ(updated(Device::apart), updated(Device::cpu));
  EXPECT_NE(updated(Device::cpu)[0], 1);
}

TEST(Seam, MemoryOfAnotherDeviceIsRefusedByName) {
  const Training training = training_with({});
  const auto trainer = trainer_on(Device::late, training), other = trainer_on(Device::late, training);
  Storage storage(trainer->model().context().backend());
  Workers workers(1);
  Executor executor(trainer->plan(), storage, workers, nullptr);
  const SlotId tokens = trainer->plan().program.slot_named("tokens");
  const auto own = storage.backend().allocate(4096, MemoryRole::other),
             theirs = other->model().context().backend().allocate(4096, MemoryRole::other);
  EXPECT_NO_THROW(executor.bind(tokens, own->data()));
  EXPECT_TRUE(refuses({"tokens", "not in the memory of device cpu"}, [&] { executor.bind(tokens, theirs->data()); }));
}

/// Ranks are threads that share the device.
const std::vector<Keys>& topologies() {
  static const std::vector<Keys> all = {
      {{"ranks", "2"}},
      {{"ranks", "2"}, {"zero", "1"}, {"precision", "\"bf16\""}},
      {{"ranks", "3"}, {"zero", "2"}, {"precision", "\"fp16\""}, {"loss_scale_initial", "1e9"}},
      {{"ranks", "2"}, {"zero", "3"}, {"recompute", "\"blocks\""}},
      {{"stages", "2"}, {"schedule", "\"1f1b\""}},
      {{"stages", "2"}, {"schedule", "\"zb-v\""}, {"precision", "\"bf16\""}},
      {{"ranks", "4"}, {"stages", "2"}, {"schedule", "\"interleaved\""}, {"zero", "2"}},
      {{"stages", "3"}, {"schedule", "\"zb-h1\""}, {"accumulate", "6"}},
      {{"ranks", "4"}, {"stages", "2"}, {"tensor", "2"}, {"schedule", "\"gpipe\""}},
      {{"tensor", "2"}, {"optimizer", "\"muon\""}},
      {{"ranks", "8"}, {"stages", "2"}, {"tensor", "2"}, {"zero", "1"}},
  };
  return all;
}

TEST(Seam, RanksThatShareADeviceHaveTheBitsOfTheCpu) {
  for (const Keys& keys : topologies()) {
    Training training = training_with({{"accumulate", "4"}});
    for (const auto& [key, value] : keys) training.recipe.set(key, value);
    training.options.width = 16, training.options.heads = 2;
    training.options.context = 8;
    const std::string told = told_by(Device::cpu, training);
    for (const Device device : {Device::late, Device::random})
      EXPECT_EQ(told_by(device, training), told) << name_of(device) << ' ' << training.recipe.json();
  }
}

}  // namespace
}  // namespace st
