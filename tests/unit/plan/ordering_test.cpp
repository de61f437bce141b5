// Plans by hand, each with a fault of its kind, and the same without it.
#include "plan/ordering.h"

#include <gtest/gtest.h>

#include "small_program.h"

namespace st {
namespace {

/// A plan of one section of nodes over slots of 64 f32, which lie in the buckets where the test says.
class HandMadePlan {
 public:
  using Kind = Instruction::Kind;

  HandMadePlan() {
    plan_.program.sections.emplace_back();
    plan_.micro_batches = 2;
    plan_.memory.bytes[static_cast<size_t>(Arena::buckets)] = 4096;
    plan_.memory.bytes[static_cast<size_t>(Arena::stash)] = 4096;
  }

  SlotId slot(Place place, Role role = Role::gathered) {
    plan_.memory.slots.push_back(place);
    const Type type{.dtype = DType::f32, .shape = {64}, .layout = {}};
    return plan_.program.add_slot({.name = text("slot.", plan_.program.slots.size()), .type = type, .role = role, .init = {}});
  }
  SlotId slot_at(int64_t offset) { return slot({Arena::buckets, offset}); }
  int32_t link(const StageLink& link) {
    plan_.program.links.push_back(link);
    return static_cast<int32_t>(plan_.program.links.size()) - 1;
  }
  void split_stash(int32_t buffers) { plan_.memory.stash = {{.begin = 0, .bytes = 256, .count = buffers}}; }

  /// Return the instruction's index.
  size_t kernel(std::vector<SlotId> reads, std::vector<SlotId> writes) {
    return append({.op = Op::store, .in = {}, .out = {}, .reads = reads, .writes = writes, .attrs = {}}, Kind::kernel);
  }
  size_t post(std::vector<SlotId> reads, std::vector<SlotId> writes) {
    return append({.op = Op::all_gather, .in = {}, .out = {}, .reads = reads, .writes = writes, .attrs = {}}, Kind::post,
                  {.op = Op::all_gather});
  }
  size_t exchange(MeshAxis axis) {
    return append({.op = Op::all_gather, .in = {}, .out = {}, .reads = {}, .writes = {}, .attrs = {}}, Kind::exchange,
                  {.op = Op::all_gather, .axis = axis});
  }
  size_t await(size_t post) {
    return append({.op = Op::await, .in = {}, .out = {}, .reads = {}, .writes = {}, .attrs = {}}, Kind::await, {},
                  plan_.instructions[post].exchange);
  }
  size_t receive(SlotId into, int32_t link) {
    return append({.op = Op::receive, .in = {}, .out = {}, .reads = {}, .writes = {into}, .attrs = {}}, Kind::receive,
                  {.op = Op::receive, .axis = MeshAxis::stage, .link = link, .other = 1});
  }
  size_t send(SlotId from, int32_t link, int32_t micro_batch = 0) {
    Graph& graph = plan_.program.sections[0].graph;
    const Place place = plan_.memory.slots[static_cast<size_t>(from)];
    add({.op = Op::load, .in = {}, .out = {plan_.program.slot(from).type}, .reads = {from}, .writes = {}, .attrs = {}}, {place});
    const Value value{graph.size() - 1, 0};
    return append({.op = Op::send, .in = {value}, .out = {}, .reads = {}, .writes = {}, .attrs = {}}, Kind::send,
                  {.op = Op::send, .axis = MeshAxis::stage, .link = link, .other = 1}, -1, micro_batch);
  }
  /// The same node in another micro-batch, or its release.
  size_t again(size_t of, Kind kind, int32_t micro_batch) {
    Instruction at = plan_.instructions[of];
    at.kind = kind;
    at.micro_batch = micro_batch;
    plan_.instructions.push_back(at);
    return plan_.instructions.size() - 1;
  }
  void move_first(size_t of) {
    std::rotate(plan_.instructions.begin(), plan_.instructions.begin() + static_cast<std::ptrdiff_t>(of),
                plan_.instructions.begin() + static_cast<std::ptrdiff_t>(of) + 1);
  }

  const Plan& plan() const { return plan_; }
  Ordering ordering() const { return ordering_of(plan_); }
  /// "first second", "then" where the second one is of the next step, for each fault.
  std::string faults() const {
    std::string out;
    for (const Unordered& fault : ordering().faults)
      out += text(out.empty() ? "" : ", ", fault.first, fault.in_next_step ? " then " : " ", fault.second);
    return out;
  }

 private:
  void add(Node node, std::vector<Place> places) {
    plan_.program.sections[0].graph.nodes.push_back(std::move(node));
    plan_.memory.values.resize(1);
    plan_.memory.values[0].push_back(std::move(places));
  }
  size_t append(Node node, Kind kind, ExchangePlan of = {}, int32_t exchange = -1, int32_t micro_batch = 0) {
    add(std::move(node), {});
    if (exchange < 0 && kind != Kind::kernel) {
      exchange = static_cast<int32_t>(plan_.exchanges.size());
      plan_.exchanges.push_back(std::move(of));
    }
    plan_.instructions.push_back(
        {.section = 0, .node = plan_.program.sections[0].graph.size() - 1, .micro_batch = micro_batch, .exchange = exchange, .kind = kind});
    plan_.begin_of_update = plan_.instructions.size();
    return plan_.instructions.size() - 1;
  }

  Plan plan_;
};

TEST(Ordering, RefusesAReadBeforeTheAwaitOfWhatWritesIt) {
  for (const bool waits : {false, true}) {
    HandMadePlan p;
    const SlotId gathered = p.slot_at(0), other = p.slot_at(512);
    const size_t post = p.post({}, {gathered});
    if (waits) p.await(post);
    const size_t read = p.kernel({gathered}, {other});
    if (!waits) p.await(post);
    EXPECT_EQ(p.faults(), waits ? "" : text(post, " ", read));
    if (waits) continue;
    const Unordered fault = p.ordering().faults.at(0);
    EXPECT_EQ(fault.before, (MemoryAccess{Arena::buckets, -1, 0, 256, true}));
    EXPECT_EQ(fault.after, (MemoryAccess{Arena::buckets, -1, 0, 256, false}));
    EXPECT_EQ(text_of(p.plan(), fault),
              "forward %0 of micro-batch 0 (all_gather, instruction 0) writes bytes 0 to 255 of buckets, which forward %1 of micro-batch 0 "
              "(store, instruction 1) reads; an await of instruction 0 before forward %1 of micro-batch 0 (store, instruction 1) would "
              "order them");
  }
}

TEST(Ordering, RefusesAWriteOfWhatAPostedCollectiveStillReads) {
  for (const bool waits : {false, true}) {
    HandMadePlan p;
    const SlotId sum = p.slot_at(0), other = p.slot_at(1024);
    const SlotId reused = p.slot_at(128);  // the second half of the sum lies there too
    const size_t post = p.post({sum}, {other});
    p.kernel({sum}, {});  // both may read
    if (waits) p.await(post);
    const size_t write = p.kernel({}, {reused});
    if (!waits) p.await(post);
    EXPECT_EQ(p.faults(), waits ? "" : text(post, " ", write));
    if (!waits) {
      EXPECT_EQ(p.ordering().faults.at(0).after, (MemoryAccess{Arena::buckets, -1, 128, 256, true}));
    }
  }
}

TEST(Ordering, AllowsAnythingBesideACollectiveOfOtherBytes) {
  HandMadePlan p;
  const SlotId gathered = p.slot_at(256);
  const size_t post = p.post({}, {gathered});
  p.kernel({}, {p.slot_at(0), p.slot_at(512)});
  p.kernel({}, {p.slot({Arena::activations, 256})});
  p.kernel({}, {p.slot({Arena::host, 0}), p.slot({Arena::host, 0})});
  p.await(post);
  EXPECT_EQ(p.faults(), "");
  EXPECT_EQ(p.ordering().streams, 2);
  EXPECT_EQ(p.ordering().waits, 1);
}

TEST(Ordering, FindsWhatTheNextStepDisturbs) {
  HandMadePlan p;
  const SlotId sum = p.slot_at(0);
  const size_t write = p.kernel({}, {sum}), post = p.post({sum}, {});
  EXPECT_EQ(p.faults(), text(post, " then ", write));
  EXPECT_NE(text_of(p.plan(), p.ordering().faults.at(0)).find(" writes in the next step; "), std::string::npos);
}

TEST(Ordering, TheHostReadsWhatLastsAfterAStep) {
  HandMadePlan p;
  const SlotId parameter = p.slot({Arena::parameters, 0}, Role::parameter);
  const size_t post = p.post({}, {parameter});
  EXPECT_EQ(p.faults(), text(post, " ", Unordered::kHost));
  EXPECT_NE(text_of(p.plan(), p.ordering().faults.at(0)).find(", which the host reads; an await of instruction 0 before the host would"),
            std::string::npos);
  p.await(post);
  EXPECT_EQ(p.faults(), "");
}

TEST(Ordering, RefusesAReleaseBeforeItsMessage) {
  for (const bool is_early : {false, true}) {
    HandMadePlan p;
    const int32_t link = p.link({.carries = StageLink::Carries::activations, .from = 0, .to = 1});
    const SlotId sent = p.slot_at(0);
    const size_t send = p.send(sent, link), release = p.again(send, Instruction::Kind::release, 0);
    const size_t write = p.kernel({}, {sent});
    if (is_early) p.move_first(release);
    EXPECT_EQ(p.faults(), is_early ? text(send + 1, " ", write) : "");
    if (is_early) {
      EXPECT_NE(text_of(p.plan(), p.ordering().faults.at(0)).find("; a release of instruction 1 before"), std::string::npos);
    }
  }
}

TEST(Ordering, EachBufferOfTheStashHasItsOwnMessage) {
  for (const int32_t buffers : {1, 2}) {
    HandMadePlan p;
    const int32_t link = p.link({.carries = StageLink::Carries::activations, .from = 0, .to = 1});
    p.split_stash(buffers);
    const SlotId sent = p.slot({Arena::stash, 0}, Role::stash);
    const size_t write = p.kernel({}, {sent}), send = p.send(sent, link);
    p.again(write, Instruction::Kind::kernel, 1);
    p.again(send, Instruction::Kind::send, 1);
    p.move_first(p.again(send, Instruction::Kind::release, 0));  // the second micro-batch has none
    EXPECT_EQ(p.faults(), buffers == 1 ? "2 3" : "4 then 3");
  }
}

TEST(Ordering, RefusesAMessageIntoBytesThatAreStillRead) {
  for (const bool waits : {false, true}) {
    HandMadePlan p;
    const int32_t link = p.link({.carries = StageLink::Carries::activations, .from = 1, .to = 0});
    const SlotId read = p.slot_at(0);
    const size_t post = p.post({read}, {p.slot_at(512)});
    if (waits) p.await(post);
    const size_t receive = p.receive(read, link);
    if (!waits) p.await(post);
    EXPECT_EQ(p.faults(), waits ? "" : text(post, " ", receive));
  }
}

TEST(Ordering, ACollectiveOfTheDataRanksWaitsForAllPostedOnesAndOthersDoNot) {
  for (const MeshAxis axis : {MeshAxis::data, MeshAxis::all, MeshAxis::tensor, MeshAxis::stage}) {
    HandMadePlan p;
    const SlotId gathered = p.slot_at(0);
    const size_t post = p.post({}, {gathered});
    p.exchange(axis);
    const size_t read = p.kernel({gathered}, {});
    p.await(post);
    const bool waits = axis == MeshAxis::data || axis == MeshAxis::all;
    EXPECT_EQ(p.faults(), waits ? "" : text(post, " ", read)) << name_of(axis);
  }
}

TEST(Ordering, AnAwaitIsRedundantIfALaterCollectiveIsAwaitedInstead) {
  HandMadePlan p;
  const SlotId a = p.slot_at(0), b = p.slot_at(512);
  const size_t first = p.post({}, {a}), second = p.post({}, {b});
  const size_t of_first = p.await(first), of_second = p.await(second);
  p.kernel({a, b}, {});
  EXPECT_EQ(redundant_waits(p.plan()), std::vector<size_t>{of_first});
  EXPECT_TRUE(ordering_of(p.plan(), of_first).holds());
  const Ordering without = ordering_of(p.plan(), of_second);
  ASSERT_EQ(without.faults.size(), 1U);
  EXPECT_EQ(without.faults[0].first, second);
}

/// A weight goes to stage 1, and the gradient of its use comes back before the update changes the weight.
TEST(Ordering, AUsesGradientSaysThatTheWeightHasArrived) {
  for (const int32_t from : {1, 2}) {
    HandMadePlan p;
    const int32_t weights = p.link({.carries = StageLink::Carries::weights, .from = 0, .to = 1});
    const int32_t uses = p.link({.carries = StageLink::Carries::uses, .from = from, .to = 0});
    const SlotId weight = p.slot({Arena::parameters, 0}, Role::parameter);
    const size_t send = p.send(weight, weights);
    p.receive(p.slot_at(0), uses);
    const size_t update = p.kernel({}, {weight});
    EXPECT_EQ(p.faults(), from == 1 ? "" : text(send, " ", update)) << "from stage " << from;
  }
}

/// The other end: the gradient is sent in one step and made again in the next one, after the weight has come.
TEST(Ordering, AWeightSaysThatTheUsesGradientHasArrived) {
  for (const bool is_promised : {true, false}) {
    HandMadePlan p;
    const int32_t weights = p.link({.carries = StageLink::Carries::weights, .from = 1, .to = 0});
    const int32_t uses = p.link({.carries = StageLink::Carries::uses, .from = 0, .to = 1});
    const SlotId gradient = p.slot_at(0);
    size_t receive = p.receive(p.slot_at(512), weights);
    p.kernel({}, {gradient});
    size_t send = p.send(gradient, uses);
    if (!is_promised) {
      p.move_first(send);
      send = 0;
      ++receive;
    }
    const std::vector<BrokenPromise> broken = p.ordering().broken;
    EXPECT_EQ(broken.empty(), is_promised);
    if (is_promised) {
      EXPECT_EQ(p.faults(), "");
      continue;
    }
    EXPECT_EQ(broken, (std::vector<BrokenPromise>{{send, receive}}));
    EXPECT_EQ(text_of(p.plan(), broken[0]),
              "forward %3 of micro-batch 0 (send, instruction 0) sends a use's gradient before forward %0 of micro-batch 0 (receive, "
              "instruction 1) has received the weight; the receive must come first");
  }
}

TEST(Ordering, IsPrintedInALineOrWithItsFaults) {
  HandMadePlan p;
  const SlotId gathered = p.slot_at(0);
  p.kernel({}, {gathered});
  EXPECT_EQ(print_ordering(p.plan()), "ordering: 1 conflict on 1 stream, which runs one instruction after another\n");
  const size_t post = p.post({}, {gathered});
  const std::string refused = print_ordering(p.plan());
  EXPECT_TRUE(refused.starts_with("ordering: 2 conflicts on 2 streams, 1 of them not ordered\n  forward %1 ")) << refused;
  p.await(post);
  EXPECT_EQ(print_ordering(p.plan()), "ordering: 2 conflicts on 2 streams, 2 of them between two streams; all are ordered, by 1 wait\n");
}

}  // namespace
}  // namespace st
