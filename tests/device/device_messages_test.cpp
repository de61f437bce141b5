// Messages between stages that share a device: the bits are the host's, and what is not in order is found.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "device_ranks.h"
#include "exec/planned_message.h"

namespace st {
namespace {

constexpr int64_t kValues = 64, kBytes = kValues * 4;

std::vector<float> value_of(int64_t number) { return numbers(kValues, static_cast<uint32_t>(number) + 1); }

/// An end of a link from rank 0 to rank 1, with one operand.
struct MessageEnd {
  MessageEnd(Backend& device, Communicator& group, double deadline = 20)
      : backend(device),
        memory(device.allocate(kBytes, MemoryRole::other)),
        operand{memory->data(), DType::f32, Shape{kValues}},
        call{.in = {&operand, group.rank() == 0 ? 1U : 0U},
             .out = {},
             .reads = {},
             .writes = {&operand, group.rank() == 0 ? 0U : 1U},
             .workspace = {}},
        plan{.axis = MeshAxis::stage, .dtype = DType::f32, .label = "a value", .link = 0, .elements = kValues},
        stages(group),
        stream(device.make_stream()),
        message(plan, call, stages, device, *stream) {
    const LinkEnds ends{.from = 0, .to = 1};
    stages.connect(make_links(group, {&ends, 1}, {.deadline = deadline}, device.is_host_memory() ? nullptr : &device));
  }
  ~MessageEnd() {
    stages.connect({});  // before the memory from which they may still send
    stream->finish();
  }
  MessageEnd(const MessageEnd&) = delete;
  MessageEnd& operator=(const MessageEnd&) = delete;

  /// Work of the stream that makes the operand, or takes what it is.
  void make_from(const Buffer& from) { stream->copy(operand.data, from.data(), kBytes); }
  void take_to(const Buffer& to) { stream->copy(to.data(), operand.data, kBytes); }
  /// As the executor calls it.
  void pass(void (PlannedMessage::*call_of)()) {
    if (!message.follows()) stream->finish();
    (message.*call_of)();
  }
  const Buffer& buffer_of(const std::vector<float>& values) {
    buffers.push_back(backend.allocate(kBytes, MemoryRole::other));
    backend.to_device(buffers.back()->data(), values.data(), kBytes);
    return *buffers.back();
  }
  std::vector<float> values_in(const Buffer& buffer) {
    std::vector<float> values(kValues);
    backend.to_host(values.data(), buffer.data(), kBytes);
    return values;
  }

  Backend& backend;
  std::unique_ptr<Buffer> memory;
  std::vector<std::unique_ptr<Buffer>> buffers;
  Operand operand;
  const Call call;
  const ExchangePlan plan;
  StageLinks stages;
  std::unique_ptr<Stream> stream;
  PlannedMessage message;
};

struct Passed {
  std::vector<std::vector<float>> values;
  std::array<int64_t, 2> sent{}, copied{};  // by rank
};

/// Messages of other values one after another, each of which is overwritten as soon as it may be.
Passed passed_over(Backend& sender, Backend& receiver) {
  constexpr int64_t kMessages = 6;
  Passed passed;
  expect_none(on_ranks(2, [&](DirectExchange& group) {
    const auto rank = static_cast<size_t>(group.rank());
    MessageEnd end(rank == 0 ? sender : receiver, group);
    for (int64_t n = 0; n < kMessages; ++n) end.buffer_of(rank == 0 ? value_of(n) : std::vector<float>(kValues));
    for (const auto& buffer : end.buffers) {
      if (rank == 0) {
        end.pass(&PlannedMessage::release);
        end.make_from(*buffer);
        end.pass(&PlannedMessage::send);
      } else {
        end.pass(&PlannedMessage::receive);
        end.take_to(*buffer);
      }
    }
    end.stream->finish();
    if (rank == 1)
      for (const auto& buffer : end.buffers) passed.values.push_back(end.values_in(*buffer));
    passed.sent[rank] = end.stages.sent_bytes();
    passed.copied[rank] = end.message.copied_bytes();
  }));
  return passed;
}

TEST(DeviceMessages, HaveTheBitsAndTheBytesOfTheHosts) {
  const auto cpu = make_cpu_backend();
  const Passed expected = passed_over(*cpu, *cpu);
  for (size_t n = 0; n < expected.values.size(); ++n) EXPECT_EQ(expected.values[n], value_of(static_cast<int64_t>(n)));
  for (const Order order : kOrders) {
    const auto device = delayed(order);
    const Passed passed = passed_over(*device, *device);
    EXPECT_EQ(passed.values, expected.values);
    EXPECT_EQ(passed.sent, expected.sent);
    EXPECT_EQ(passed.copied, (std::array<int64_t, 2>{0, 0}));  // nothing goes through the host
    EXPECT_EQ(device->allocated_bytes(), 0);
  }
}

TEST(DeviceMessages, GoThroughTheHostWhereStagesHaveDevicesOfTheirOwn) {
  const auto cpu = make_cpu_backend();
  const auto first = delayed(Order::late), second = delayed(Order::random);
  const Passed expected = passed_over(*cpu, *cpu);
  for (const auto& [sender, receiver] :
       {std::pair<Backend*, Backend*>{first.get(), second.get()}, {first.get(), cpu.get()}, {cpu.get(), first.get()}}) {
    const Passed passed = passed_over(*sender, *receiver);
    EXPECT_EQ(passed.values, expected.values);
    EXPECT_EQ(passed.sent, expected.sent);
    EXPECT_EQ(passed.copied,
              (std::array{sender->is_host_memory() ? int64_t{0} : kBytes, receiver->is_host_memory() ? int64_t{0} : kBytes}));
  }
}

// Faults. The value is copied to the sender's operand right before the message, and another one over it right after.

/// Whether the receiver gets the value.
bool arrives(Order order, Planted planted, bool is_made_late, bool is_overwritten) {
  const auto device = delayed(order, planted);
  bool is_right = false;
  expect_none(on_ranks(2, [&](DirectExchange& group) {
    MessageEnd end(*device, group);
    const Buffer &value = end.buffer_of(value_of(1)), &other = end.buffer_of(value_of(2));
    if (group.rank() == 0) {
      is_made_late ? end.make_from(value) : device->to_device(end.operand.data, value_of(1).data(), kBytes);
      end.message.send();
      if (is_overwritten) {
        end.message.release();
        end.make_from(other);
        end.stream->finish();
      }
      group.barrier();
    } else {
      end.message.receive();
      group.barrier();  // until the sender has written
      end.stream->finish();
      is_right = end.values_in(*end.memory) == value_of(1);
    }
    group.barrier();  // no memory is freed before that
    end.stream->finish();
  }));
  return is_right;
}

TEST(DeviceMessages, WaitForWhatTheSenderWritesAndTheReceiverReads) {
  for (const Order order : kOrders) EXPECT_TRUE(arrives(order, Planted::nothing, true, true));
}

TEST(DeviceMessages, ATestFindsAnEventThatIsTooEarly) {
  for (const Planted planted : {Planted::event_is_early, Planted::stream_does_not_wait})
    EXPECT_FALSE(arrives(Order::late, planted, true, false)) << static_cast<int>(planted);
}

TEST(DeviceMessages, ATestFindsAValueThatIsOverwrittenBeforeTheOtherStageHasReadIt) {
  for (const Planted planted : {Planted::event_is_early, Planted::stream_does_not_wait})
    EXPECT_FALSE(arrives(Order::late, planted, false, true)) << static_cast<int>(planted);
}

// Stages that do not come, or end.

void wait_for(const std::atomic<bool>& flag) {
  while (!flag) std::this_thread::yield();
}

TEST(DeviceMessages, OfAStageThatDoesNotComeNameItAtTheDeadline) {
  for (const int late : {0, 1}) {
    const auto device = delayed(Order::late);
    std::atomic<bool> is_named = false;
    const auto caught = on_ranks(2, [&](DirectExchange& group) {
      MessageEnd end(*device, group, 0.1);
      if (group.rank() == late) return wait_for(is_named);
      try {
        if (late == 1) end.message.send();
        late == 1 ? end.message.release() : end.message.receive();
      } catch (...) {
        is_named = true;
        throw;
      }
      is_named = true;
    });
    EXPECT_TRUE(is_error(error_of(caught[1 - late]), Code::timeout, {text("rank ", late), "message", "has not entered"}));
  }
}

/// The memory that the sender frees is poisoned: who reads it late is killed.
TEST(DeviceMessages, OfAStageThatFailsAreReadBeforeItsMemoryIsFree) {
  for (const Order order : kOrders) {
    const auto device = delayed(order);
    std::atomic<bool> is_given = false, is_freed = false;
    std::vector<float> values;
    const auto caught = on_ranks(2, [&](DirectExchange& group) {
      if (group.rank() == 0) {
        try {
          MessageEnd end(*device, group);
          end.make_from(end.buffer_of(value_of(1)));
          end.message.send();
          wait_for(is_given);
          fail(Code::io, "the device is gone");
        } catch (...) {
          is_freed = true;
          throw;
        }
      }
      MessageEnd end(*device, group);
      end.message.receive();
      is_given = true;
      wait_for(is_freed);
      end.stream->finish();
      values = end.values_in(*end.memory);
    });
    EXPECT_EQ(error_of(caught[0]).code(), Code::io);
    EXPECT_EQ(error_of(caught[1]).code(), Code::ok);
    EXPECT_EQ(values, value_of(1));
    EXPECT_EQ(device->allocated_bytes(), 0);
  }
}

/// The sender withdraws what it has sent, and ends the group later.
TEST(DeviceMessages, ThatAreWithdrawnAreNotReadAndTheirSenderIsNamed) {
  for (const Order order : kOrders)
    for (const bool is_gone : {false, true}) {
      const auto device = delayed(order);
      std::atomic<bool> is_withdrawn = false;
      const auto caught = on_ranks(2, [&](DirectExchange& group) {
        MessageEnd end(*device, group);
        if (group.rank() == 0) {
          end.message.send();
          end.message.withdraw();
          if (is_gone) end.stages.abort("the device is gone");
          is_withdrawn = true;
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
          end.stages.abort("the device is gone");
          return;
        }
        wait_for(is_withdrawn);
        end.make_from(end.buffer_of(value_of(3)));
        const Error error = error_of([&] { end.message.receive(); });
        end.stream->finish();
        EXPECT_EQ(end.values_in(*end.memory), value_of(3));
        throw error;
      });
      EXPECT_TRUE(is_error(error_of(caught[1]), Code::rank_failed, {"rank 0", "the device is gone"}));
    }
}

TEST(DeviceMessages, OfStagesThatAreAbortedReadNoMemoryThatIsFree) {
  for (const Order order : kOrders)
    for (int attempt = 0; attempt < 30; ++attempt) {
      const auto device = delayed(order);
      std::atomic<int> passed = 0;
      const auto caught = on_ranks(2, [&](DirectExchange& group) {
        MessageEnd end(*device, group);
        std::thread aborts([&] {
          while (passed < attempt) std::this_thread::yield();
          if (group.rank() == attempt % 2) end.stages.abort("enough");
        });
        const Error error = error_of([&] {
          for (;; ++passed) group.rank() == 0 ? end.message.send() : end.message.receive();
        });
        aborts.join();
        throw error;
      });
      for (const std::exception_ptr& each : caught) EXPECT_EQ(error_of(each).code(), Code::rank_failed) << error_of(each).message();
      EXPECT_EQ(device->allocated_bytes(), 0);
    }
}

TEST(DeviceMessages, RefuseAnOperandOfAnotherDeviceByName) {
  const auto device = delayed(Order::eager), other = delayed(Order::eager);
  const auto caught = on_ranks(2, [&](DirectExchange& group) {
    MessageEnd end(*device, group);
    const auto elsewhere = other->allocate(kBytes, MemoryRole::other);
    end.operand.data = elsewhere->data();
    end.message.place();
    group.rank() == 0 ? end.message.send() : end.message.receive();
  });
  for (const std::exception_ptr& each : caught)
    EXPECT_TRUE(is_error(error_of(each), Code::invalid_argument, {"message of a value", "not in the memory of device cpu"}));
}

}  // namespace
}  // namespace st
