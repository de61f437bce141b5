// libscaletrain_strange.so: a plug-in that is wrong in the way that ST_STRANGE names. Never installed.
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string_view>

#include "backend/backend_plugin.h"

namespace st {
namespace {

int one(std::string& /*why_none*/) { return 1; }
std::unique_ptr<Backend> nothing(int /*index*/, std::shared_ptr<MemorySource> /*memory*/) { return nullptr; }

constexpr DeviceMaker kGood = {"strange", one, nothing, nullptr}, kNameless = {nullptr, one, nothing, nullptr},
                      kShouting = {"STRANGE", one, nothing, nullptr},
                      kLong = {"strange_strange_strange_strange_strange", one, nothing, nullptr}, kTaken = {"cpu", one, nothing, nullptr},
                      kNoCount = {"strange", nullptr, nothing, nullptr}, kNoOpen = {"strange", one, nullptr, nullptr};

struct Kind {
  std::string_view name;
  BackendPlugin plugin;
};

}  // namespace
}  // namespace st

extern "C" __attribute__((visibility("default"))) const st::BackendPlugin* st_backend_v1() {
  using namespace st;
  static const Kind kinds[] = {
      {"abi", {kBackendAbi + 6, kBuildId, &kGood, 1}},      {"build", {kBackendAbi, "0123456789abcdef", &kGood, 1}},
      {"no_build", {kBackendAbi, nullptr, &kGood, 1}},      {"no_devices", {kBackendAbi, kBuildId, nullptr, 1}},
      {"none", {kBackendAbi, kBuildId, &kGood, 0}},         {"fewer", {kBackendAbi, kBuildId, &kGood, -3}},
      {"many", {kBackendAbi, kBuildId, &kGood, 1 << 30}},   {"nameless", {kBackendAbi, kBuildId, &kNameless, 1}},
      {"shouting", {kBackendAbi, kBuildId, &kShouting, 1}}, {"long", {kBackendAbi, kBuildId, &kLong, 1}},
      {"taken", {kBackendAbi, kBuildId, &kTaken, 1}},       {"no_count", {kBackendAbi, kBuildId, &kNoCount, 1}},
      {"no_open", {kBackendAbi, kBuildId, &kNoOpen, 1}}};
  const char* const asked = std::getenv("ST_STRANGE");
  const std::string_view kind = asked == nullptr ? "" : asked;
  if (kind == "throws") throw std::runtime_error("strange: nothing works today");
  if (kind == "throws_a_number") throw 42;
  for (const Kind& each : kinds)
    if (each.name == kind) return &each.plugin;
  return nullptr;
}
