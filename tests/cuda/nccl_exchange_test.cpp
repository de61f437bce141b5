// Ranks with a simulated device each, connected by the NCCL of fake_nccl.cpp: the bits of the direct exchange; starts and exchanges that
// fail are named errors on every rank.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <thread>

#include "backend/device_group.h"
#include "backend/device_registry.h"
#include "device/one_exchange.h"
#include "exec/device_connection.h"
#include "exec/network_exchange.h"
#include "exec/network_message.h"
#include "ir/cuts.h"
#include "plan/exchange_memory.h"
#include "refusal.h"

namespace st {
namespace {

constexpr int kMostRanks = 8;

/// A device for each rank.
const std::vector<std::unique_ptr<Backend>>& devices() {
  static const auto& all = *new std::vector<std::unique_ptr<Backend>>([] {
    std::vector<std::unique_ptr<Backend>> made;
    for (int rank = 0; rank < kMostRanks; ++rank) made.push_back(open_device(text("cuda-simulated:", rank), nullptr));
    return made;
  }());
  return all;
}

Backend& device_of(int rank) { return *devices()[static_cast<size_t>(rank)]; }

void connect(DirectExchange& group, Backend& backend) { connect_devices(group, *backend.open_network(), std::make_shared<DeviceTurn>()); }

/// ST_FAKE_NCCL for its lifetime.
class Fault {
 public:
  explicit Fault(const char* what) { setenv("ST_FAKE_NCCL", what, 1); }
  ~Fault() { unsetenv("ST_FAKE_NCCL"); }
  Fault(const Fault&) = delete;
  Fault& operator=(const Fault&) = delete;
};

/// Folders of communicators that have not ended.
int left_over() {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
    count += entry.path().filename().string().starts_with(text("st_fake_nccl_", getpid(), "_"));
  return count;
}

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

/// Tensors in shards of data ranks: equal ones; four grains, of which the last is short; one rank's.
Program sharded(int ranks) {
  Program program;
  program.mesh.data = ranks;
  const auto add = [&](const char* name, int64_t elements, int32_t turn) {
    program.add_slot({.name = name,
                      .type = {.dtype = DType::f32, .shape = {elements}, .layout = {}},
                      .init = {},
                      .sums = {.kind = AxisLayout::Kind::flat, .where = turn, .grain = 16}});
  };
  add("equal", 16 * ranks, 0);
  add("ragged", 53, 2);
  add("of one", 3, 1);
  return program;
}

/// A rank's gradients, and its shards of their sums, which are gathered again. All numbers are whole, so sums have the same bits in any
/// order.
class ShardedSums {
 public:
  ShardedSums(Backend& backend, DirectExchange& group, const Program& program)
      : backend_(backend), group_(group), program_(program), stream_(backend.make_stream()) {
    for (size_t t = 0; t < program.slots.size(); ++t) {
      const auto id = static_cast<SlotId>(t);
      const int64_t elements = program.slot(id).type.shape.elements(), own = shard_elements(program, id, group.rank());
      wholes_.push_back(add(elements));
      shards_.push_back(add(own));
      tensors_.push_back({.operand = static_cast<int32_t>(t), .cut_like = id, .bytes = 4});
    }
    plan_of(add_, Op::reduce_scatter).adds = true;
    plan_of(sum_, Op::reduce_scatter);
    plan_of(gather_, Op::all_gather);
    reduction_.in = gathering_.writes = wholes_;
    reduction_.writes = gathering_.reads = shards_;
    room_.emplace(backend, planned());
  }

  /// Of the exchange that needs the most.
  int64_t planned() const { return exchange_memory(add_, program_, group_.rank(), group_.size()); }
  int64_t room() const { return room_->bytes(); }
  /// The sums of these ranks' gradients, onto earlier ones or not.
  void reduce(bool adds, int contributors) {
    for (size_t t = 0; t < wholes_.size(); ++t) {
      std::vector<float> values;
      for (int64_t i = 0; i < wholes_[t].elements(); ++i) values.push_back(static_cast<float>((group_.rank() + 1) * term(t, i)));
      backend_.to_device(wholes_[t].data, values.data(), wholes_[t].elements() * 4);
    }
    run(adds ? add_ : sum_, reduction_, contributors);
  }
  /// All elements, by the tensor.
  std::vector<std::vector<float>> gathered() {
    for (const Operand& whole : wholes_) backend_.zero(whole.data, whole.elements() * 4);
    run(gather_, gathering_, group_.size());
    std::vector<std::vector<float>> all;
    for (const Operand& whole : wholes_) {
      all.emplace_back(static_cast<size_t>(whole.elements()));
      backend_.to_host(all.back().data(), whole.data, whole.elements() * 4);
    }
    return all;
  }
  static int64_t term(size_t tensor, int64_t element) { return element % 7 + static_cast<int64_t>(tensor) + 1; }

 private:
  Operand add(int64_t elements) {
    memory_.push_back(backend_.allocate(std::max<int64_t>(elements, 1) * 4, MemoryRole::other));
    return {memory_.back()->data(), DType::f32, Shape{elements}};
  }
  ExchangePlan& plan_of(ExchangePlan& plan, Op op) const {
    plan = {.op = op, .label = "tensors", .tensors = tensors_, .is_fast = true, .is_of_all = true};
    return plan;
  }
  void run(const ExchangePlan& plan, const Call& call, int contributors) {
    PlannedExchange exchange(plan, program_, call, group_, backend_, stream_.get(), nullptr, &*room_);
    exchange.fork(*stream_);
    exchange.run(contributors);
    exchange.join(*stream_);
    stream_->finish();
  }

  Backend& backend_;
  DirectExchange& group_;
  const Program& program_;
  const std::unique_ptr<Stream> stream_;
  std::vector<std::unique_ptr<Buffer>> memory_;
  std::vector<Operand> wholes_, shards_;
  std::vector<ExchangePlan::Tensor> tensors_;
  ExchangePlan sum_, add_, gather_;
  Call reduction_, gathering_;
  std::optional<TermRoom> room_;
};

TEST(Nccl, FastShardsOfFiveAndEightRanksAreTheirSums) {
  for (const int ranks : {5, 8}) {
    const Program program = sharded(ranks);
    const auto errors = on_ranks(ranks, [&](DirectExchange& group) {
      connect(group, device_of(group.rank()));
      ShardedSums own(device_of(group.rank()), group, program);
      own.reduce(false, ranks);
      own.reduce(true, ranks);
      const std::vector<std::vector<float>> all = own.gathered();
      const int64_t times = 2 * ranks * (ranks + 1) / 2;
      for (size_t t = 0; t < all.size(); ++t)
        for (size_t i = 0; i < all[t].size(); ++i)
          ASSERT_EQ(all[t][i], static_cast<float>(times * ShardedSums::term(t, static_cast<int64_t>(i)))) << ranks << ' ' << t << ' ' << i;
      EXPECT_EQ(own.room(), own.planned()) << ranks;
    });
    expect_none(errors);
  }
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
  for (const std::exception_ptr& error : sums_of(3, 0.3)) {
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

TEST(Nccl, ElementsThatNeverArriveEndTheWaitAtTheDeadline) {
  const Fault fault("lost:2");
  for (const std::exception_ptr& error : sums_of(3, 0.3)) EXPECT_NE(error_of(error).code(), Code::ok);
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

/// NCCL counts open groups by thread: one that a throw left open would take the next group's operations for its own.
TEST(Nccl, ASendThatThrowsLeavesTheNextGroupOfItsThreadAlone) {
  constexpr int64_t kBytes = 64;
  std::vector<std::unique_ptr<DeviceNetwork>> networks;
  std::vector<std::unique_ptr<Stream>> streams;
  std::vector<std::unique_ptr<Buffer>> places;
  for (const int rank : {0, 1}) {
    networks.push_back(device_of(rank).open_network());
    streams.push_back(device_of(rank).make_stream());
    places.push_back(device_of(rank).allocate(kBytes, MemoryRole::tensors));
  }
  const auto joined = [&] {
    std::vector<std::byte> id(static_cast<size_t>(networks[0]->id_bytes()));
    networks[0]->make_id(id);
    std::vector<std::unique_ptr<DeviceGroup>> groups;
    for (const int rank : {0, 1}) groups.push_back(networks[static_cast<size_t>(rank)]->join(id, rank, 2));
    wait_for_all(groups);
    return groups;
  };
  const auto part = [&](int other, size_t own) { return DeviceGroup::Part{other, places[own]->data(), kBytes}; };
  const auto failing = joined();
  const DeviceGroup::Part to_itself[] = {part(0, 0)};
  EXPECT_EQ(error_of([&] { failing[0]->exchange(*streams[0], to_itself, {}); }).code(), Code::unavailable);

  const std::vector<std::byte> sent(kBytes, std::byte{7});
  device_of(0).to_device(places[0]->data(), sent.data(), kBytes);
  const auto groups = joined();
  const DeviceGroup::Part sends[] = {part(1, 0)}, receives[] = {part(0, 1)};
  groups[0]->exchange(*streams[0], sends, {});
  groups[1]->exchange(*streams[1], {}, receives);
  wait_for_all(groups);
  finish_all(streams);
  std::vector<std::byte> received(kBytes);
  device_of(1).to_host(received.data(), places[1]->data(), kBytes);
  EXPECT_EQ(received, sent);
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
  const std::string good = std::getenv("SCALETRAIN_SIMULATED_NCCL");
  setenv("SCALETRAIN_SIMULATED_NCCL", std::getenv("ST_LACKING_NCCL"), 1);
  EXPECT_NE(why_no_network().find("has no function ncclRecv, so it is no NCCL that this plug-in knows"), std::string::npos)
      << why_no_network();
  setenv("SCALETRAIN_SIMULATED_NCCL", good.c_str(), 1);
}

}  // namespace
}  // namespace st
