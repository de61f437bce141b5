#include "exec/device_connection.h"

#include <cstdlib>
#include <exception>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/os/machine.h"
#include "base/text.h"
#include "comm/rank_texts.h"

namespace st {
namespace {

constexpr const char* kVariable = "SCALETRAIN_DEVICE_EXCHANGE";
constexpr std::string_view kLabel = "connection of devices";

/// A rank's wish, and what it has.
struct Fact {
  std::string wish, why_none, network, version, host, device;
};

Fact own_fact(Backend& backend, std::unique_ptr<DeviceNetwork>& network) {
  Fact own;
  const char* const wish = std::getenv(kVariable);
  own.wish = wish == nullptr || *wish == '\0' ? "auto" : wish;
  own.host = os::host_name();
  own.device = backend.bus_id();
  if (own.wish == "host") return own;
  try {
    network = backend.open_network();
    if (!network) fail(Code::unavailable, text("devices ", backend.name(), " have no network"));
    own.network = network->name();
    own.version = network->version();
  } catch (const std::exception& why) {  // of any kind: the others wait for this rank's answer
    network = nullptr;
    own.why_none = why.what();
  }
  return own;
}

std::string printed(const Fact& fact) {
  std::string all;
  for (const std::string* part : {&fact.wish, &fact.why_none, &fact.network, &fact.version, &fact.host, &fact.device})
    all.append(*part).append(1, '\0');
  return all;
}

Fact parsed(std::string_view all) {
  Fact fact;
  for (std::string* part : {&fact.wish, &fact.why_none, &fact.network, &fact.version, &fact.host, &fact.device}) *part = take_text(all);
  return fact;
}

/// Empty: nothing is in the way of the network.
std::string obstacle(const Communicator& ranks, const std::vector<Fact>& facts, std::string_view device) {
  const auto named = [&](size_t rank) { return text_of_rank(ranks, static_cast<int>(rank)); };
  for (size_t rank = 1; rank < facts.size(); ++rank)  // before what is missing: who installs that would be no further
    for (size_t before = 0; before < rank; ++before) {
      const Fact &one = facts[before], &other = facts[rank];
      if (!other.device.empty() && one.host == other.host && one.device == other.device)
        return text(named(before), " and ", named(rank), " have one device (", other.device, " of ", other.host,
                    "), and no network connects ranks of one; give each rank a device of its own: ", device,
                    ":$LOCAL_RANK under scaletrain launch and torchrun, ", device,
                    ":$SLURM_LOCALID under srun; or run ranks of one device as threads (recipe ranks)");
    }
  for (size_t rank = 0; rank < facts.size(); ++rank)
    if (!facts[rank].why_none.empty()) return text(named(rank), ": ", facts[rank].why_none);
  for (size_t rank = 1; rank < facts.size(); ++rank) {
    const Fact &first = facts[0], &other = facts[rank];
    if (other.network != first.network || other.version != first.version)
      return text(named(rank), " has ", other.network, " ", other.version, ", rank 0 ", first.network, " ", first.version,
                  "; install one version on all");
  }
  return "";
}

}  // namespace

DeviceConnection connection_of(Communicator& ranks, Backend& backend) {
  DeviceConnection made;
  const std::string own = printed(own_fact(backend, made.network));
  std::vector<Fact> facts;
  for (const std::string& fact : gather_texts(ranks, own, kLabel)) facts.push_back(parsed(fact));
  std::string wish = "auto";
  for (size_t rank = 0; rank < facts.size(); ++rank) {
    const std::string& asked = facts[rank].wish;
    check(asked == "auto" || asked == "host" || asked == "device", kVariable, " of ", text_of_rank(ranks, static_cast<int>(rank)),
          " must be auto, host or device, got \"", asked, "\"");
    if (asked == "auto") continue;
    check(wish == "auto" || wish == asked, kVariable, " is ", wish, " on one rank and ", asked, " on ",
          text_of_rank(ranks, static_cast<int>(rank)), "; it must be the same on all");
    wish = asked;
  }
  const std::string why_not = wish == "host" ? text(kVariable, " is host") : obstacle(ranks, facts, backend.name());
  require(wish != "device" || why_not.empty(), Code::unavailable, kVariable, " is device, but ", why_not);
  if (!why_not.empty()) made.network = nullptr;
  made.is_hindered = wish != "host" && !why_not.empty();
  made.text = why_not.empty() ? text("devices exchange over ", facts[0].network, " ", facts[0].version)
                              : text("devices of ranks are not connected and exchange through the host: ", why_not);
  return made;
}

void connect_devices(Communicator& ranks, DeviceNetwork& network, std::shared_ptr<DeviceTurn> turn) {
  const std::string label = text("start of ", network.name());
  std::vector<std::byte> id(static_cast<size_t>(network.id_bytes()));
  std::exception_ptr error;
  try {
    if (ranks.rank() == 0) network.make_id(id);
  } catch (const std::exception&) {
    error = std::current_exception();
  }
  require_all_fine(ranks, error, label);
  ranks.broadcast(id.data(), std::ssize(id), DType::u8, 0, label);
  std::unique_ptr<DeviceGroup> devices;
  const CollectiveCall call{Collective::barrier, ReduceOp::sum, DType::u8, 0, -1, label};
  ranks.meet(call, 0, 0, [&](std::span<const uint64_t>) -> int64_t {
    devices = network.join(id, ranks.rank(), ranks.size());
    ranks.await(label, [&] { return devices->is_ready(); });
    return 0;
  });
  ranks.connect_devices(std::make_shared<ConnectedDevices>(std::move(devices), std::move(turn)));
}

}  // namespace st
