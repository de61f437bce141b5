#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/os.h"
#include "base/text.h"
#include "comm/communicator.h"
#include "comm/pipes/pipe_group.h"
#include "comm/plugins/transport_plugin.h"
#include "every_group.h"
#include "plugin_place.h"
#include "sanitized.h"

namespace st {
namespace {

constexpr bool kCanBeSeen = !kThreadSanitized;  // Gloo is Debian's binary: ThreadSanitizer does not see how its threads agree

std::vector<std::unique_ptr<Transport>> make_gloo_group(int size) {
  const FreePort port;
  const TransportPlugin plugin = plugin_of("gloo");
  std::vector<std::unique_ptr<Transport>> ends(static_cast<size_t>(size));
  for_each_rank(size, [&](int rank) {
    ends[static_cast<size_t>(rank)] =
        join_pipe_group(plugin.open({.rank = rank, .size = size, .master_host = "127.0.0.1", .master_port = port.number(), .patience = 20}),
                        {.patience = 20, .is_cancelled = {}});
  });
  return ends;
}

std::vector<GroupKind> gloo_kinds() {
  if (!kCanBeSeen || !why_no_plugin("gloo").empty()) return {};
  return {GroupKind{"gloo", make_gloo_group, 5}};  // each with two threads of its own, here on few cores
}

INSTANTIATE_TEST_SUITE_P(Gloo, EveryGroup, testing::ValuesIn(gloo_kinds()), [](const auto& instance) { return instance.param.name; });

class Gloo : public testing::Test {
 protected:
  void SetUp() override {
    if (!kCanBeSeen) GTEST_SKIP() << "ThreadSanitizer does not see how Gloo's threads agree";
    if (const std::string why = why_no_plugin("gloo"); !why.empty()) GTEST_SKIP() << "no Gloo: " << why;
  }

  Error thrown_at_start(const TransportPlugin::Start& start) {
    try {
      plugin_of("gloo").open(start);
    } catch (const Error& error) {
      return error;
    }
    return {Code::ok, "nothing was thrown"};
  }
};

TEST_F(Gloo, APortInUseIsSaid) {
  const TakenPort taken;
  const Error error = thrown_at_start({.rank = 0, .size = 2, .master_host = "127.0.0.1", .master_port = taken.number(), .patience = 5});
  EXPECT_EQ(error.code(), Code::busy) << error.message();
  EXPECT_EQ(error.place.rank, 0);
  EXPECT_NE(error.message().find(text("port ", taken.number())), std::string::npos) << error.message();
}

TEST_F(Gloo, AWrongAddressIsSaid) {
  for (const int rank : {0, 1}) {
    const Error error =
        thrown_at_start({.rank = rank, .size = 2, .master_host = "no-such-host.invalid", .master_port = 29555, .patience = 5});
    EXPECT_EQ(error.code(), Code::invalid_argument) << error.message();
    EXPECT_NE(error.message().find("\"no-such-host.invalid\""), std::string::npos) << error.message();
    EXPECT_NE(error.message().find("MASTER_ADDR"), std::string::npos) << error.message();
  }
  const Error error = thrown_at_start({.rank = 1, .size = 2, .master_host = "", .master_port = 0, .patience = 5});
  EXPECT_EQ(error.code(), Code::invalid_argument) << error.message();
}

TEST_F(Gloo, ANobodyAtThePortIsSaid) {
  const FreePort port;
  const double began = os::seconds();
  const Error error = thrown_at_start({.rank = 1, .size = 2, .master_host = "127.0.0.1", .master_port = port.number(), .patience = 0.3});
  EXPECT_EQ(error.code(), Code::timeout) << error.message();
  EXPECT_EQ(error.place.rank, 0);
  EXPECT_NE(error.message().find("Connection refused"), std::string::npos) << error.message();
  EXPECT_LT(os::seconds() - began, 3) << "a machine may be busy, but this is no patience of 0.3 s";
}

/// Ranks that start on a thread each; what each has thrown.
std::vector<Error> starts(const std::vector<TransportPlugin::Start>& all) {
  std::vector<Error> errors(all.size(), Error(Code::ok, "nothing was thrown"));
  std::vector<std::thread> threads;
  for (size_t i = 0; i < all.size(); ++i)
    threads.emplace_back([&, i] {
      try {
        plugin_of("gloo").open(all[i]);
      } catch (const Error& error) {
        errors[i] = error;
      }
    });
  for (auto& thread : threads) thread.join();
  return errors;
}

TEST_F(Gloo, RanksThatKnowRankZeroByAddressesOfBothFamiliesMeet) {
  if (std::ifstream("/proc/net/if_inet6").peek() == std::ifstream::traits_type::eof()) GTEST_SKIP() << "this machine has no IPv6";
  const std::string hosts[2] = {"127.0.0.1", "::1"};
  for (const int first : {0, 1}) {
    const FreePort port;
    const TransportPlugin plugin = plugin_of("gloo");
    for_each_rank(3, [&](int rank) {
      const std::string& host = hosts[(rank + first) % 2];
      Communicator own(
          join_pipe_group(plugin.open({.rank = rank, .size = 3, .master_host = host, .master_port = port.number(), .patience = 20}),
                          {.patience = 20, .is_cancelled = {}}));
      int32_t sum = rank;
      own.all_reduce(&sum, 1, DType::i32, ReduceOp::sum);
      EXPECT_EQ(sum, 3);
    });
  }
}

TEST_F(Gloo, OneThatCannotBeLetInForWantOfDescriptorsIsSaidAndTakesNoCore) {
  const FreePort port;
  Error error(Code::ok, "");
  std::thread rank_0(
      [&] { error = thrown_at_start({.rank = 0, .size = 2, .master_host = "127.0.0.1", .master_port = port.number(), .patience = 1.5}); });
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_port = htons(static_cast<uint16_t>(port.number()));
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const auto come = [&](int file) { return connect(file, reinterpret_cast<const sockaddr*>(&place), sizeof place) == 0; };
  const int first = socket(AF_INET, SOCK_STREAM, 0);
  for (int i = 0; i < 1000 && !come(first); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // it is let in
  const int guest = socket(AF_INET, SOCK_STREAM, 0);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few = before;
  few.rlim_cur = 256;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  std::vector<int> all{guest};
  while (all.back() >= 0) all.push_back(dup(guest));
  const std::clock_t began = std::clock();
  EXPECT_TRUE(come(guest));
  rank_0.join();
  EXPECT_LT(std::clock() - began, CLOCKS_PER_SEC / 2) << "of all threads, in a second and more";
  setrlimit(RLIMIT_NOFILE, &before);
  all.push_back(first);
  for (const int file : all)
    if (file >= 0) close(file);
  EXPECT_EQ(error.code(), Code::timeout) << error.message();
  EXPECT_NE(error.message().find("Too many open files"), std::string::npos) << error.message();
}

TEST_F(Gloo, AMissingRankIsNamedOnAllOthers) {
  const FreePort port;
  TransportPlugin::Start start{.rank = 0, .size = 4, .master_host = "localhost", .master_port = port.number(), .patience = 0.4};
  std::vector<TransportPlugin::Start> all;
  for (const int rank : {0, 1, 3}) {
    start.rank = rank;
    all.push_back(start);
  }
  for (const Error& error : starts(all)) {
    EXPECT_EQ(error.code(), Code::timeout) << error.message();
    EXPECT_EQ(error.place.rank, 2) << error.message();
    EXPECT_NE(error.message().find("have not come to localhost"), std::string::npos) << error.message();
  }
}

TEST_F(Gloo, AnotherSizeAndARankThatIsThereTwiceAreRefused) {
  const FreePort port;
  TransportPlugin::Start rank_0{.rank = 0, .size = 3, .master_host = "127.0.0.1", .master_port = port.number(), .patience = 5};
  TransportPlugin::Start other = rank_0;
  other.rank = 1;
  other.size = 2;
  for (const Error& error : starts({rank_0, other})) {
    EXPECT_EQ(error.code(), Code::rank_mismatch) << error.message();
    EXPECT_EQ(error.place.rank, 1);
    EXPECT_NE(error.message().find("one of 2 ranks, rank 0 as one of 3"), std::string::npos) << error.message();
  }
  rank_0.patience = other.patience = 0.5;
  other.size = 3;
  const auto errors = starts({rank_0, other, other});  // two of rank 1, none of rank 2
  EXPECT_EQ(errors[0].code(), Code::timeout) << errors[0].message();
  EXPECT_TRUE((errors[1].code() == Code::busy) != (errors[2].code() == Code::busy)) << errors[1].message() << errors[2].message();
}

TEST_F(Gloo, OneThatIsCancelledAtTheStartIsAFailureToTheOthers) {
  const FreePort port;
  std::atomic<bool> is_cancelled{false};
  TransportPlugin::Start rank_0{.rank = 0, .size = 3, .master_host = "127.0.0.1", .master_port = port.number(), .patience = 20};
  TransportPlugin::Start other = rank_0;
  rank_0.is_cancelled = [&] { return is_cancelled.load(); };
  other.rank = 1;
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(1000));
    is_cancelled = true;
  });
  const auto errors = starts({rank_0, other});
  later.join();
  EXPECT_EQ(errors[0].code(), Code::cancelled) << errors[0].message();
  EXPECT_EQ(errors[1].code(), Code::rank_failed) << errors[1].message();
  EXPECT_EQ(errors[1].place.rank, 0);
  EXPECT_NE(errors[1].message().find("cancelled"), std::string::npos) << errors[1].message();
}

/// Whether this machine has ::1.
bool has_ipv6() {
  const int file = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  const bool has = file >= 0 && bind(file, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  if (file >= 0) close(file);
  return has;
}

TEST_F(Gloo, RanksMeetByNameAndOverIpv6) {
  std::vector<std::string> hosts = {"localhost"};
  if (has_ipv6()) hosts.emplace_back("::1");
  for (const std::string& host : hosts) {
    const FreePort port;
    TransportPlugin::Start rank_0{.rank = 0, .size = 2, .master_host = host, .master_port = port.number(), .patience = 10};
    TransportPlugin::Start other = rank_0;
    other.rank = 1;
    for (const Error& error : starts({rank_0, other})) EXPECT_EQ(error.code(), Code::ok) << host << ": " << error.message();
  }
}

TEST_F(Gloo, OneThatEndsAsSoonAsItIsThereTakesNobodyWithIt) {
  for (int i = 0; i < 50; ++i) {
    const FreePort port;
    std::vector<TransportPlugin::Start> all;
    for (int rank = 0; rank < 3; ++rank)
      all.push_back({.rank = rank, .size = 3, .master_host = "127.0.0.1", .master_port = port.number(), .patience = 10});
    for (const Error& error : starts(all)) ASSERT_EQ(error.code(), Code::ok) << error.message();
  }
}

TEST(TransportPlugins, OneOfAnOlderVersionIsRefusedWithBoth) {
  setenv("SCALETRAIN_PLUGINS", ST_OLDER_FOLDER, 1);
  try {
    const TransportPlugin older("older");
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::unavailable);
    for (const char* word : {"version 0.0.7", "interface 0", "interface 1", "install the plug-in of this version"})
      EXPECT_NE(error.message().find(word), std::string::npos) << error.message();
  }
}

TEST(TransportPlugins, AMissingOneSaysWhatAndHow) {
  const auto thrown = [](const std::string& name) {
    try {
      plugin_of(name);
    } catch (const Error& error) {
      return error;
    }
    return Error(Code::ok, "nothing was thrown");
  };
  const Error missing = thrown("carrier_pigeon");
  EXPECT_EQ(missing.code(), Code::unavailable);
  EXPECT_NE(missing.message().find("libscaletrain_carrier_pigeon.so"), std::string::npos) << missing.message();
  EXPECT_EQ(thrown("../gloo").code(), Code::invalid_argument);
}

}  // namespace
}  // namespace st
