// ST_TEST_DEVICE=eager, late or random: tests run on the delayed device, with streams of that order; cuda-simulated, or another device of a
// plug-in: on that in place of the cpu.
#include <cstdlib>
#include <string_view>

#include "backend/device_registry.h"
#include "delayed_backend.h"
#include "tested_device.h"

namespace st {
namespace {

const bool is_set = [] {
  const char* const asked = std::getenv("ST_TEST_DEVICE");
  const std::string_view name = asked == nullptr ? "" : asked;
  if (name.empty()) return false;
  if (name.find("cuda") == 0) {
    tested_device = [name](const std::string& device) -> BackendMaker {
      if (device != "cpu") return {};
      return [name](const std::shared_ptr<MemorySource>& source) { return open_device(std::string(name), source); };
    };
    return true;
  }
  const Order order = name == "late" ? Order::late : name == "random" ? Order::random : Order::eager;
  tested_device = [order](const std::string& device) -> BackendMaker {
    return [order, device](const std::shared_ptr<MemorySource>& source) {
      return std::make_unique<DelayedBackend>(device == "cpu" ? make_cpu_backend(source) : make_reference_backend(source), source, order);
    };
  };
  return true;
}();

}  // namespace
}  // namespace st
