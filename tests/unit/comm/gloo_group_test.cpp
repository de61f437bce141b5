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
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/os/machine.h"
#include "base/text.h"
#include "comm/direct_exchange.h"
#include "comm/pipes/pipe_group.h"
#include "comm/plugins/transport_plugin.h"
#include "every_group.h"
#include "plugin_place.h"
#include "sanitized.h"
#include "thrown_error.h"

namespace st {
namespace {

constexpr bool kCanBeSeen = !kThreadSanitized;  // Gloo is Debian's binary: ThreadSanitizer does not see how its threads synchronise

/// How a rank of a group on this machine starts.
TransportPlugin::Start start_of(int rank, int size, int port, double patience, const std::string& host = "127.0.0.1") {
  return {.rank = rank, .size = size, .master_host = host, .master_port = port, .patience = patience};
}

std::unique_ptr<Transport> join_over_gloo(const TransportPlugin& plugin, const TransportPlugin::Start& start) {
  return join_pipe_group(plugin.open(start), {.patience = 20, .is_cancelled = {}});
}

std::vector<std::unique_ptr<Transport>> make_gloo_group(int size) {
  const int port = free_port();
  const TransportPlugin plugin = plugin_of("gloo");
  return ends_of_ranks(size, [&](int rank) { return join_over_gloo(plugin, start_of(rank, size, port, 20)); });
}

std::vector<GroupKind> gloo_kinds() {
  if (!kCanBeSeen || !why_no_plugin("gloo").empty()) return {};
  return {GroupKind{"gloo", make_gloo_group, 6}};  // each rank has two threads of its own, and there may be few cores
}

INSTANTIATE_TEST_SUITE_P(Gloo, EveryGroup, testing::ValuesIn(gloo_kinds()), [](const auto& instance) { return instance.param.name; });

class Gloo : public testing::Test {
 protected:
  void SetUp() override {
    if (!kCanBeSeen) GTEST_SKIP() << "ThreadSanitizer does not see how Gloo's threads synchronise";
    if (const std::string why = why_no_plugin("gloo"); !why.empty()) GTEST_SKIP() << "no Gloo: " << why;
  }

  static Error thrown_at_start(const TransportPlugin::Start& start) {
    return error_of([&] { plugin_of("gloo").open(start); });
  }
};

TEST_F(Gloo, APortInUseIsSaid) {
  const TakenPort taken;
  const Error error = thrown_at_start({.rank = 0, .size = 2, .master_host = "127.0.0.1", .master_port = taken.number(), .patience = 5});
  EXPECT_TRUE(is_error(error, Code::busy, {text("port ", taken.number())}));
  EXPECT_EQ(error.place.rank, 0);
}

TEST_F(Gloo, AWrongAddressIsSaid) {
  for (const int rank : {0, 1}) {
    const Error error =
        thrown_at_start({.rank = rank, .size = 2, .master_host = "no-such-host.invalid", .master_port = 29555, .patience = 5});
    EXPECT_TRUE(is_error(error, Code::invalid_argument, {"\"no-such-host.invalid\"", "MASTER_ADDR"}));
  }
  const Error error = thrown_at_start({.rank = 1, .size = 2, .master_host = "", .master_port = 0, .patience = 5});
  EXPECT_TRUE(is_error(error, Code::invalid_argument));
}

TEST_F(Gloo, ANobodyAtThePortIsSaid) {
  const int port = free_port();
  const double began = os::seconds();
  const Error error = thrown_at_start(start_of(1, 2, port, 0.3));
  EXPECT_TRUE(is_error(error, Code::timeout, {"Connection refused"}));
  EXPECT_EQ(error.place.rank, 0);
  EXPECT_LT(os::seconds() - began, 3) << "a machine may be busy, but this is no patience of 0.3 s";
}

/// Starts each rank on its own thread; returns the error of each.
std::vector<Error> starts(const std::vector<TransportPlugin::Start>& all) {
  std::vector<Error> errors;
  for (const auto& caught :
       caught_on_ranks(static_cast<int>(all.size()), [&](int i) { plugin_of("gloo").open(all[static_cast<size_t>(i)]); }))
    errors.push_back(error_of(caught));
  return errors;
}

TEST_F(Gloo, RanksThatKnowRankZeroByAddressesOfBothFamiliesMeet) {
  if (std::ifstream("/proc/net/if_inet6").peek() == std::ifstream::traits_type::eof()) GTEST_SKIP() << "this machine has no IPv6";
  const std::string hosts[2] = {"127.0.0.1", "::1"};
  for (const int first : {0, 1}) {
    const int port = free_port();
    const TransportPlugin plugin = plugin_of("gloo");
    run_ranks(3, [&](int rank) {
      DirectExchange own(join_over_gloo(plugin, start_of(rank, 3, port, 20, hosts[(rank + first) % 2])));
      int32_t sum = rank;
      own.all_reduce(&sum, 1, DType::i32, ReduceOp::sum);
      EXPECT_EQ(sum, 3);
    });
  }
}

TEST_F(Gloo, OneThatCannotBeLetInForWantOfDescriptorsIsSaidAndTakesNoCore) {
  const int port = free_port();
  Error error(Code::ok, "");
  std::thread rank_0([&] { error = thrown_at_start(start_of(0, 2, port, 1.5)); });
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_port = htons(static_cast<uint16_t>(port));
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const auto come = [&](int file) { return connect(file, reinterpret_cast<const sockaddr*>(&place), sizeof place) == 0; };
  const int first = socket(AF_INET, SOCK_STREAM, 0);
  for (int i = 0; i < 1000 && !come(first); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // until it is accepted
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
  EXPECT_TRUE(is_error(error, Code::timeout, {"Too many open files"}));
}

TEST_F(Gloo, AMissingRankIsNamedOnAllOthers) {
  const int port = free_port();
  std::vector<TransportPlugin::Start> all;
  for (const int rank : {0, 1, 3}) all.push_back(start_of(rank, 4, port, 0.4, "localhost"));
  for (const Error& error : starts(all)) {
    EXPECT_TRUE(is_error(error, Code::timeout, {"ranks reached localhost"}));
    EXPECT_EQ(error.place.rank, 2) << error.message();
  }
}

TEST_F(Gloo, AnotherSizeAndARankThatIsThereTwiceAreRefused) {
  const int port = free_port();
  for (const Error& error : starts({start_of(0, 3, port, 5), start_of(1, 2, port, 5)})) {
    EXPECT_TRUE(is_error(error, Code::rank_mismatch, {"one of 2 ranks, rank 0 as one of 3"}));
    EXPECT_EQ(error.place.rank, 1);
  }
  const TransportPlugin::Start rank_1 = start_of(1, 3, port, 0.5);
  const auto errors = starts({start_of(0, 3, port, 0.5), rank_1, rank_1});  // rank 2 is missing
  EXPECT_EQ(errors[0].code(), Code::timeout) << errors[0].message();
  EXPECT_TRUE((errors[1].code() == Code::busy) != (errors[2].code() == Code::busy)) << errors[1].message() << errors[2].message();
}

TEST_F(Gloo, OneThatIsCancelledAtTheStartIsAFailureToTheOthers) {
  const int port = free_port();
  std::atomic<bool> is_cancelled{false};
  TransportPlugin::Start rank_0 = start_of(0, 3, port, 20);
  rank_0.is_cancelled = [&] { return is_cancelled.load(); };
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(1000));
    is_cancelled = true;
  });
  const auto errors = starts({rank_0, start_of(1, 3, port, 20)});
  later.join();
  EXPECT_TRUE(is_error(errors[0], Code::cancelled));
  EXPECT_TRUE(is_error(errors[1], Code::rank_failed, {"cancelled"}));
  EXPECT_EQ(errors[1].place.rank, 0);
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
    const int port = free_port();
    for (const Error& error : starts({start_of(0, 2, port, 10, host), start_of(1, 2, port, 10, host)}))
      EXPECT_EQ(error.code(), Code::ok) << host << ": " << error.message();
  }
}

TEST_F(Gloo, OneThatEndsAsSoonAsItIsThereTakesNobodyWithIt) {
  for (int i = 0; i < 50; ++i) {
    const int port = free_port();
    for (const Error& error : starts({start_of(0, 3, port, 10), start_of(1, 3, port, 10), start_of(2, 3, port, 10)}))
      ASSERT_EQ(error.code(), Code::ok) << error.message();
  }
}

TEST(TransportPlugins, OneOfAnOlderVersionIsRefusedWithBoth) {
  setenv("SCALETRAIN_PLUGINS", ST_OLDER_FOLDER, 1);
  EXPECT_TRUE(is_error(error_of([] { const TransportPlugin older("older"); }), Code::unavailable,
                       {"version 0.0.7", "interface 0", "interface 1", "install the plug-in of this version"}));
}

TEST(TransportPlugins, AMissingOneSaysWhatAndHow) {
  const Error missing = error_of([] { plugin_of("carrier_pigeon"); });
  EXPECT_TRUE(is_error(missing, Code::unavailable, {"libscaletrain_carrier_pigeon.so"}));
  EXPECT_EQ(error_of([] { plugin_of("../gloo"); }).code(), Code::invalid_argument);
}

}  // namespace
}  // namespace st
