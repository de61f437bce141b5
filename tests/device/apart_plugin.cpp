// libscaletrain_apart.so: devices for tests, of which one works. Never installed.
#include <array>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "apart_backend.h"
#include "backend/backend_plugin.h"

namespace st {
namespace {

int two(std::string& /*why_none*/) { return 2; }

int none(std::string& why_none) {
  why_none = "its fan is missing, and this line is longer than a short text";
  return 0;
}

int throws(std::string& /*why_none*/) { throw std::runtime_error("the driver is asleep, which no one has expected"); }

const OpTable* inner_kernels = nullptr;  // of ApartBackend; the same for all

/// Tasks that run tasks: the library's threads know that they are inside one, and run the inner ones serially.
void run_nested(const Call& call) {
  constexpr int64_t kTasks = 32;
  std::array<std::atomic<int64_t>, kTasks> runs{};
  call.workers->run(kTasks, [&](int64_t outer) {
    std::this_thread::sleep_for(std::chrono::microseconds(20));  // so that other threads get some
    call.workers->run(kTasks, [&](int64_t inner) { runs[static_cast<size_t>(inner)] += outer; });
  });
  for (const auto& sum : runs) require(sum == kTasks * (kTasks - 1) / 2, Code::internal, "nested tasks ran ", sum.load());
  (*inner_kernels)[static_cast<size_t>(Op::embedding)].run(call);
}

class PluginBackend : public ApartBackend {
 public:
  PluginBackend(std::string_view name, std::shared_ptr<MemorySource> memory) : ApartBackend(std::move(memory)), name_(name) {}
  std::string_view name() const override { return name_; }
  const OpTable& kernels() const override {
    static const OpTable table = [this] {
      inner_kernels = &ApartBackend::kernels();
      OpTable all = *inner_kernels;
      all[static_cast<size_t>(Op::embedding)].run = run_nested;
      return all;
    }();
    return table;
  }

 private:
  std::string_view name_;
};

std::unique_ptr<Backend> open_apart(int /*index*/, std::shared_ptr<MemorySource> memory) {
  return std::make_unique<PluginBackend>("apart", std::move(memory));
}

std::unique_ptr<Backend> open_unknown(int /*index*/, std::shared_ptr<MemorySource> memory) {
  return std::make_unique<PluginBackend>("unknown", std::move(memory));
}

std::unique_ptr<Backend> open_broken(int index, std::shared_ptr<MemorySource> /*memory*/) {
  Error error(Code::io, text("broken: device ", index, " did not answer within the time that it has for an answer"));
  error.place.file = "/dev/a_name_that_is_longer_than_a_short_text";
  throw error;
}

std::unique_ptr<Backend> open_odd(int /*index*/, std::shared_ptr<MemorySource> /*memory*/) {
  throw std::out_of_range("odd: no such place");
}

std::unique_ptr<Backend> open_nothing(int /*index*/, std::shared_ptr<MemorySource> /*memory*/) { return nullptr; }

constexpr DeviceMaker kDevices[] = {{"apart", two, open_apart, &cpu_needs},     {"none", none, open_apart, &cpu_needs},
                                    {"asleep", throws, open_apart, &cpu_needs}, {"broken", two, open_broken, &cpu_needs},
                                    {"odd", two, open_odd, &cpu_needs},         {"nothing", two, open_nothing, &cpu_needs},
                                    {"unknown", two, open_unknown, nullptr},    {"misnamed", two, open_apart, nullptr}};

}  // namespace
}  // namespace st

extern "C" __attribute__((visibility("default"))) const st::BackendPlugin* st_backend_v1() {
  using namespace st;
  static const BackendPlugin plugin = {kBackendAbi, kBuildId, kDevices, std::size(kDevices)};
  return &plugin;
}
