// Ranks with a simulated device each, connected by the NCCL of fake_nccl.cpp: the bits of the direct exchange; starts and exchanges that
// fail are named errors on every rank.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>
#include <thread>

#include "backend/device_group.h"
#include "device/one_exchange.h"
#include "exec/network_message.h"
#include "exec/planned_instructions.h"
#include "models/mlp.h"
#include "nccl_devices.h"
#include "recipe/kernel_needs_of.h"
#include "recipe/recipe.h"
#include "refusal.h"

namespace st {
namespace {

TEST(Nccl, HasTheBitsAndTheBytesOfTheDirectExchange) {
  for (const Exchanged& what : kExchanged)
    for (const int ranks : {2, 3, 4}) {
      if (what.op == Op::tensor_scatter && what.elements % ranks != 0) continue;
      const int contributors = what.op == Op::rank_sums ? (ranks + 1) / 2 : ranks;
      const auto cpu = make_cpu_backend();
      const ExchangeOutcome expected = outcome_of(what, ranks, contributors, [&](int) -> Backend& { return *cpu; });
      const ExchangeOutcome outcome = outcome_of(what, ranks, contributors, device_of, connect);
      EXPECT_EQ(outcome.results, expected.results) << name_of(what.op) << ' ' << name_of(what.dtype) << ' ' << ranks;
      for (int rank = 0; rank < ranks; ++rank) EXPECT_EQ(device_of(rank).allocated_bytes(), 0);
    }
  EXPECT_EQ(left_over(), 0);
}

/// `bytes` as numbers.
std::vector<double> numbers_of(DType dtype, const std::vector<std::byte>& bytes) {
  const bool is_wide = dtype == DType::f64;
  std::vector<double> made(bytes.size() / (is_wide ? 8 : 4));
  for (size_t i = 0; i < made.size(); ++i) {
    float single = 0;
    is_wide ? std::memcpy(&made[i], &bytes[8 * i], 8) : std::memcpy(&single, &bytes[4 * i], 4);
    if (!is_wide) made[i] = single;
  }
  return made;
}

/// Each of N terms below 64, and each sum of them, is rounded at most N times.
double rounding_of(DType dtype, int ranks) {
  const double unit = dtype == DType::f64 ? 0x1p-52 : dtype == DType::f32 ? 0x1p-23 : 0x1p-10;
  return unit * 64 * ranks * ranks;
}

TEST(Nccl, FastCollectivesAddInTheNetworksOrderAndGiveAllRanksTheSameBits) {
  bool is_any_other = false;
  for (Exchanged what : kExchanged)
    for (const int ranks : {2, 3, 4}) {
      if (what.op == Op::rank_sums || (what.op == Op::tensor_scatter && what.elements % ranks != 0)) continue;
      what.is_fast = false;
      const ExchangeOutcome expected = outcome_of(what, ranks, ranks, device_of, connect);
      what.is_fast = true;
      const ExchangeOutcome outcome = outcome_of(what, ranks, ranks, device_of, connect);
      const std::string where = text(name_of(what.op), ' ', name_of(what.dtype), ' ', ranks);
      const int64_t bytes = what.elements * bytes_of(what.dtype);
      const bool is_less = what.op == Op::tensor_sum && bytes <= kSummedAtOnce;  // in three exchanges
      EXPECT_EQ(outcome.sent, expected.sent - (is_less ? 3 * (ranks - 2) * (ranks - 1) * bytes : 0)) << where;
      for (size_t rank = 0; rank < outcome.results.size(); ++rank) {
        if (what.op == Op::tensor_gather) {
          EXPECT_EQ(outcome.results[rank], expected.results[rank]) << where;
          continue;
        }
        if (what.op == Op::tensor_sum) {
          EXPECT_EQ(outcome.results[rank], outcome.results[0]) << where;
        }
        const std::vector<double> own = numbers_of(what.dtype, outcome.results[rank]),
                                  sums = numbers_of(what.dtype, expected.results[rank]);
        for (size_t i = 0; i < sums.size(); ++i) ASSERT_NEAR(own[i], sums[i], rounding_of(what.dtype, ranks)) << where << ", " << i;
        if (ranks == 2 && bytes_of(what.dtype) > 2) {
          EXPECT_EQ(own, sums) << where;  // a + b
        }
        is_any_other = is_any_other || own != sums;
      }
      for (int rank = 0; rank < ranks; ++rank) EXPECT_EQ(device_of(rank).allocated_bytes(), 0);
    }
  EXPECT_TRUE(is_any_other);
  EXPECT_EQ(left_over(), 0);
}

/// Between threads, whose links otherwise hand messages over in the host's memory.
TEST(Nccl, MovesMessagesBothWaysAtOnce) {
  constexpr int64_t kElements = 300, kBytes = kElements * 4;
  const auto errors = on_ranks(2, [&](DirectExchange& group) {
    const int own = group.rank(), other = 1 - own;
    Backend& backend = device_of(own);
    connect(group, backend);
    const LinkEnds ends[] = {{0, 1}, {1, 0}};
    const auto links = make_links(group, ends, {}, &backend);
    Link &there = *links[static_cast<size_t>(own)], &back = *links[static_cast<size_t>(other)];
    const auto stream = backend.make_stream();
    const auto sent = backend.allocate(kBytes, MemoryRole::tensors), received = backend.allocate(kBytes, MemoryRole::tensors);
    const auto message = [&](Op op) {
      return ExchangePlan{.op = op, .axis = MeshAxis::stage, .label = "a value", .other = other, .elements = kElements};
    };
    const ExchangePlan send = message(Op::send), receive = message(Op::receive);
    NetworkMessage to(send, group, backend, *stream, *stream), from(receive, group, backend, *stream, *stream);
    to.place(sent->data());
    from.place(received->data());
    for (const float step : {1.0F, 2.0F}) {
      std::vector<float> values(kElements, step + 10.0F * static_cast<float>(own));
      backend.to_device(sent->data(), values.data(), kBytes);
      const int64_t number = there.post(to);
      back.receive(from);
      there.wait(number);
      backend.to_host(values.data(), received->data(), kBytes);
      EXPECT_EQ(values, std::vector<float>(kElements, step + 10.0F * static_cast<float>(other)));
    }
    EXPECT_EQ(there.sent_bytes(), 2 * kBytes);
    EXPECT_EQ(back.sent_bytes(), 0);
  });
  expect_none(errors);
  EXPECT_EQ(left_over(), 0);
}

/// Each rank's error of one sum, within a deadline.
std::vector<std::exception_ptr> sums_of(int ranks, double deadline, const std::function<Backend&(int)>& backend_of = device_of) {
  return on_ranks(
      ranks,
      [&](DirectExchange& group) {
        Backend& backend = backend_of(group.rank());
        connect(group, backend);
        OneExchange one(backend, group, Op::tensor_sum, DType::f32, 64, 64, 64);
        one.run(ranks);
      },
      deadline);
}

TEST(Nccl, AStartThatNeverCompletesEndsAtTheDeadline) {
  const Fault fault("start:1");
  for (const std::exception_ptr& error : sums_of(3, 1)) {
    EXPECT_TRUE(is_error(error_of(error), Code::timeout, {"start of nccl", "no rank is silent"})) << error_of(error).message();
  }
  EXPECT_EQ(left_over(), 0);
}

TEST(Nccl, AnErrorWhileElementsMoveIsThrownOnAllRanks) {
  const Fault fault("async:1");
  const auto caught = sums_of(3, 20);
  EXPECT_TRUE(is_error(error_of(caught[1]), Code::unavailable, {"nccl: ", "returned 6 (remote process exited"}))
      << error_of(caught[1]).message();
  for (const size_t rank : {0, 2})
    EXPECT_TRUE(is_error(error_of(caught[rank]), Code::rank_failed, {"rank 1 (", "it has failed"})) << error_of(caught[rank]).message();
  EXPECT_EQ(left_over(), 0);
}

/// A parameter, its moments and an update from a gradient of ones.
class OneUpdate {
 public:
  explicit OneUpdate(Backend& backend)
      : backend_(backend), attrs_(make_attrs(Op::adamw, {})), memory_(backend.allocate(kAll, MemoryRole::other)) {
    const auto at = [&](int i) { return memory_->data() + i * kEach; };
    const float gradient[kElements] = {1, 1, 1, 1}, factor = 1;
    const double rates[2] = {0.1, 1};
    backend.zero(memory_->data(), kAll);
    backend.to_device(at(0), gradient, sizeof gradient);
    backend.to_device(at(1), &factor, sizeof factor);
    backend.to_device(at(3), rates, sizeof rates);
    in_ = {{at(0), DType::f32, Shape{kElements}},
           {at(1), DType::f32, Shape{}},
           {at(2), DType::boolean, Shape{}},
           {at(3), DType::f64, Shape{2}}};
    for (int slot = 0; slot < 3; ++slot) slots_.push_back({at(4 + slot), DType::f32, Shape{kElements}});
    call_ = {.in = in_, .out = {}, .reads = slots_, .writes = slots_, .attrs = &attrs_, .workspace = at(8)};
    kernel_ = backend.prepare(Op::adamw, call_);
  }

  void enqueue(Stream& stream) { kernel_->enqueue(stream); }
  std::vector<float> slots() {
    std::vector<float> values(slots_.size() * kElements);
    for (size_t slot = 0; slot < slots_.size(); ++slot) backend_.to_host(&values[slot * kElements], slots_[slot].data, kElements * 4);
    return values;
  }

 private:
  static constexpr int64_t kElements = 4, kEach = 256, kAll = 16 * kEach;

  Backend& backend_;
  const Attrs attrs_;
  const std::unique_ptr<Buffer> memory_;
  std::vector<Operand> in_, slots_;
  Call call_;
  std::unique_ptr<Prepared> kernel_;
};

TEST(Nccl, AnUpdateThatIsGivenAfterAFailedExchangeWritesNothing) {
  const Fault fault("async:1");
  const auto caught = on_ranks(3, [&](DirectExchange& group) {
    Backend& backend = device_of(group.rank());
    connect(group, backend);
    OneExchange one(backend, group, Op::tensor_sum, DType::f32, 64, 64, 64);
    const auto before = backend.make_stream();
    OneUpdate update(backend);
    update.enqueue(*before);
    before->finish();
    const std::vector<float> updated = update.slots();
    EXPECT_NE(updated, std::vector<float>(updated.size()));
    try {
      one.run(3);
    } catch (const Error&) {
      for (int again = 0; again < 2; ++again) {
        update.enqueue(*one.exchanging);
        one.exchanging->finish();
        EXPECT_EQ(update.slots(), updated);
      }
      update.enqueue(*before);  // of another executor
      before->finish();
      EXPECT_NE(update.slots(), updated);
      throw;
    }
  });
  for (const std::exception_ptr& error : caught) EXPECT_NE(error_of(error).code(), Code::ok);
}

/// A rank's plan of a small step, over two data ranks or two stages, and what runs its instructions.
struct PlannedParts {
  PlannedParts(DirectExchange& group, Backend& device, bool is_staged)
      : backend(device),
        plan(plan_of(group.rank(), device, is_staged)),
        storage(device),
        queue(group),
        stages(group),
        computing(device.make_stream()),
        exchanging(device.make_stream()),
        moving(device.make_stream()) {
    std::vector<LinkEnds> ends;
    for (const StageLink& link : plan.program.links) ends.push_back({link.from, link.to});
    if (is_staged) stages.connect(make_links(group, ends, {}, &device));
    calls.emplace(plan, storage, workers);
    const PlanRanks ranks{.data = is_staged ? nullptr : &queue, .stages = is_staged ? &stages : nullptr};
    instructions.emplace(plan, *calls, ranks, device, PlannedInstructions::Streams{*computing, exchanging.get(), moving.get()});
  }
  static Plan plan_of(int rank, const Backend& device, bool is_staged) {
    Recipe recipe{.batch = 1};
    recipe.device = "cuda-simulated";
    for (const char* const key : {"ranks", "micro_batches"}) recipe.set(key, "2");
    if (is_staged) recipe.set("stages", "2");
    PlanOptions options;
    (is_staged ? options.stage : options.rank) = rank;
    return plan_training(build_mlp({.inputs = 3, .hidden = {4}, .outputs = 2}), recipe, kernel_needs(device, 1), options);
  }
  /// The first collective or message.
  void exchange() {
    computing->finish();  // before messages that do not follow it
    for (const PlannedInstruction& step : instructions->all()) {
      if (step.exchange != nullptr) {
        step.exchange->fork(*computing);
        return step.exchange->run(2);
      }
      if (step.at.kind == Instruction::Kind::receive) return step.message->receive();
      if (step.at.kind == Instruction::Kind::send) {
        step.message->send();
        return step.message->release();
      }
    }
    ADD_FAILURE() << "nothing is exchanged";
  }

  Backend& backend;
  const Plan plan;
  Storage storage;
  Workers workers{1};
  ExchangeQueue queue;
  StageLinks stages;
  const std::unique_ptr<Stream> computing, exchanging, moving;
  std::optional<PlannedCalls> calls;
  std::optional<PlannedInstructions> instructions;
};

TEST(Nccl, AFailedExchangeOrMessageOfAPlanHaltsTheUpdatesOfItsComputing) {
  const Fault fault("async:1");
  for (const bool is_staged : {false, true}) {
    const auto caught = on_ranks(2, [&](DirectExchange& group) {
      Backend& backend = device_of(group.rank());
      connect(group, backend);
      PlannedParts parts(group, backend, is_staged);
      OneUpdate update(backend);
      const auto is_written_by = [&](Stream& stream) {
        const std::vector<float> last = update.slots();
        update.enqueue(stream);
        stream.finish();
        return update.slots() != last;
      };
      try {
        parts.exchange();
      } catch (const Error&) {
        if (group.rank() == 1) {
          EXPECT_FALSE(is_written_by(*parts.computing)) << is_staged;
          EXPECT_TRUE(is_written_by(*parts.exchanging) && is_written_by(*parts.moving)) << is_staged;
        }
        throw;
      }
    });
    EXPECT_EQ(error_of(caught[0]).code(), Code::rank_failed) << error_of(caught[0]).message();
    EXPECT_EQ(error_of(caught[1]).code(), Code::unavailable) << error_of(caught[1]).message();
  }
}

TEST(Nccl, ElementsThatNeverArriveEndTheWaitAtTheDeadline) {
  const Fault fault("lost:2");
  const auto begin = std::chrono::steady_clock::now();
  for (const std::exception_ptr& error : sums_of(3, 1)) {
    const Code code = error_of(error).code();
    EXPECT_TRUE(code == Code::timeout || code == Code::rank_failed) << error_of(error).message();
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
  EXPECT_EQ(left_over(), 0);
}

TEST(Nccl, TwoRanksOnOneDeviceAreRefused) {
  const auto caught = sums_of(2, 20, [](int) -> Backend& { return device_of(0); });
  EXPECT_TRUE(is_error(error_of(caught[1]), Code::unavailable, {"Duplicate GPU detected"})) << error_of(caught[1]).message();
}

/// Ranks of one thread: one alone is never ready.
void wait_for_all(const std::vector<std::unique_ptr<DeviceGroup>>& groups) {
  for (bool all = false; !all;) {
    all = true;
    for (const auto& group : groups) all = group->is_ready() && all;
  }
}

/// A send ends once its elements have been received.
void finish_all(const std::vector<std::unique_ptr<Stream>>& streams) {
  std::vector<std::unique_ptr<Event>> ends;
  for (size_t rank = 0; rank < streams.size(); ++rank)
    streams[rank]->record(*ends.emplace_back(device_of(static_cast<int>(rank)).make_event()));
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  for (ptrdiff_t passed = 0; passed < std::ssize(ends); std::this_thread::yield()) {
    passed = std::ranges::count_if(ends, [](const auto& end) { return end->has_passed(); });
    ASSERT_LT(std::chrono::steady_clock::now(), deadline) << passed << " of " << ends.size() << " streams have ended";
  }
}

/// Two ranks of this thread, each with a stream and memory of its device.
class TwoRanks {
 public:
  static constexpr int64_t kBytes = 64;
  using Groups = std::vector<std::unique_ptr<DeviceGroup>>;

  TwoRanks() {
    for (const int rank : {0, 1}) {
      networks_.push_back(device_of(rank).open_network());
      streams.push_back(device_of(rank).make_stream());
      for (auto* const places : {&sent_, &received_}) {
        places->push_back(device_of(rank).allocate(kBytes, MemoryRole::tensors));
        device_of(rank).zero(places->back()->data(), kBytes);
      }
    }
  }
  Groups joined() {
    std::vector<std::byte> id(static_cast<size_t>(networks_[0]->id_bytes()));
    networks_[0]->make_id(id);
    Groups groups;
    for (const int rank : {0, 1}) groups.push_back(networks_[static_cast<size_t>(rank)]->join(id, rank, 2));
    wait_for_all(groups);
    return groups;
  }
  DeviceGroup::Part sent(size_t own, int other) const { return {other, sent_[own]->data(), kBytes}; }
  DeviceGroup::Part received(size_t own, int other) const { return {other, received_[own]->data(), kBytes}; }
  void set(int own, std::byte value) {
    const std::vector<std::byte> values(kBytes, value);
    device_of(own).to_device(sent_[static_cast<size_t>(own)]->data(), values.data(), kBytes);
  }
  std::vector<std::byte> arrived(int own) {
    std::vector<std::byte> values(kBytes);
    device_of(own).to_host(values.data(), received_[static_cast<size_t>(own)]->data(), kBytes);
    return values;
  }

  std::vector<std::unique_ptr<Stream>> streams;

 private:
  std::vector<std::unique_ptr<DeviceNetwork>> networks_;
  std::vector<std::unique_ptr<Buffer>> sent_, received_;
};

/// NCCL counts open groups by thread: one that a throw left open would take the next group's operations for its own.
TEST(Nccl, ASendThatThrowsLeavesTheNextGroupOfItsThreadAlone) {
  TwoRanks ranks;
  const auto failing = ranks.joined();
  const DeviceGroup::Part to_itself[] = {ranks.sent(0, 0)};
  EXPECT_EQ(error_of([&] { failing[0]->exchange(*ranks.streams[0], to_itself, {}); }).code(), Code::unavailable);

  ranks.set(0, std::byte{7});
  const auto groups = ranks.joined();
  const DeviceGroup::Part sends[] = {ranks.sent(0, 1)}, receives[] = {ranks.received(1, 0)};
  groups[0]->exchange(*ranks.streams[0], sends, {});
  groups[1]->exchange(*ranks.streams[1], {}, receives);
  wait_for_all(groups);
  finish_all(ranks.streams);
  EXPECT_EQ(ranks.arrived(1), std::vector<std::byte>(TwoRanks::kBytes, std::byte{7}));
}

/// A planted fault. On GPUs each rank's send waits for the other's receive, which its stream has after the send.
TEST(Nccl, SendsThatAreNotInOneGroupWithTheirReceivesAreFound) {
  for (const bool is_grouped : {true, false}) {
    TwoRanks ranks;
    for (const int rank : {0, 1}) ranks.set(rank, static_cast<std::byte>(rank + 1));
    const auto groups = ranks.joined();
    for (size_t own = 0; own < 2; ++own) {
      const int other = own == 0 ? 1 : 0;
      const DeviceGroup::Part send = ranks.sent(own, other), receive = ranks.received(own, other);
      groups[own]->exchange(*ranks.streams[own], {&send, 1}, {&receive, is_grouped ? size_t{1} : size_t{0}});
    }
    wait_for_all(groups);
    if (is_grouped) {
      finish_all(ranks.streams);
      for (const int rank : {0, 1})
        EXPECT_EQ(ranks.arrived(rank), std::vector<std::byte>(TwoRanks::kBytes, static_cast<std::byte>(2 - rank)));
      continue;
    }
    for (size_t own = 0; own < 2; ++own) {
      const auto end = device_of(static_cast<int>(own)).make_event();
      ranks.streams[own]->record(*end);
      for (int poll = 0; poll < 100; ++poll) EXPECT_FALSE(end->has_passed()) << "a send ended without its receive";
      const DeviceGroup::Part receive = ranks.received(own, own == 0 ? 1 : 0);
      EXPECT_TRUE(is_error(error_of([&] {
                             groups[own]->exchange(*ranks.streams[own], {}, {&receive, 1});
                           }),
                           Code::unavailable, {"the device has another operation under way"}));
    }
  }
  EXPECT_EQ(left_over(), 0);
}

/// A planted fault: fork() is left out. The value is copied to the operand on the computing stream right before. Where streams run late,
/// an exchange that does not wait for that copy reads what was there.
TEST(Nccl, ASendThatDoesNotWaitForTheComputingStreamIsFound) {
  const char* const order = std::getenv("SCALETRAIN_SIMULATED_ORDER");
  const bool is_late = order != nullptr && std::string_view(order) == "late";
  for (const bool waits : {true, false}) {
    if (!waits && !is_late) continue;
    std::vector<std::vector<std::byte>> results(2);
    expect_none(on_ranks(2, [&](DirectExchange& group) {
      Backend& backend = device_of(group.rank());
      connect(group, backend);
      OneExchange one(backend, group, Op::tensor_gather, DType::f32, 16, 32, 32);
      const auto value = backend.allocate(one.in_bytes, MemoryRole::other);
      one.set(std::vector<std::byte>(64));
      const std::vector<std::byte> ones(64, std::byte{1});
      backend.to_device(value->data(), ones.data(), 64);
      one.computing->copy(one.from.data, value->data(), one.in_bytes);
      if (waits) one.exchange.fork(*one.computing);
      one.exchange.run(2);
      one.exchange.join(*one.computing);
      one.exchanging->finish();
      results[static_cast<size_t>(group.rank())] = one.result();
      group.barrier();
    }));
    for (const auto& result : results) EXPECT_EQ(result == std::vector<std::byte>(128, std::byte{1}), waits);
  }
  EXPECT_EQ(left_over(), 0);
}

std::string why_no_network() {
  return error_of([] { device_of(0).open_network(); }).message();
}

TEST(Nccl, ALibraryThatCannotBeUsedIsRefusedWithTheReason) {
  setenv("ST_FAKE_NCCL_VERSION", "22304", 1);
  EXPECT_EQ(device_of(0).open_network()->version(), "2.23.4");
  for (const auto& [version, name] : {std::pair{"30001", "3.0.1"}, std::pair{"2804", "2.8.4"}}) {
    setenv("ST_FAKE_NCCL_VERSION", version, 1);
    EXPECT_NE(why_no_network().find(text(" is NCCL ", name, ", this plug-in needs 2.14 or a later 2; install NCCL")), std::string::npos)
        << why_no_network();
  }
  unsetenv("ST_FAKE_NCCL_VERSION");
  setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
  EXPECT_NE(why_no_network().find("with CUDA_LAUNCH_BLOCKING=1 the host waits for each kernel; unset it"), std::string::npos)
      << why_no_network();
  unsetenv("CUDA_LAUNCH_BLOCKING");
  const std::string good = std::getenv("SCALETRAIN_SIMULATED_NCCL");
  setenv("SCALETRAIN_SIMULATED_NCCL", std::getenv("ST_LACKING_NCCL"), 1);
  EXPECT_NE(why_no_network().find("has no function ncclRecv, so it is no NCCL that this plug-in knows"), std::string::npos)
      << why_no_network();
  setenv("SCALETRAIN_SIMULATED_NCCL", good.c_str(), 1);
}

}  // namespace
}  // namespace st
