// Gloo's side of `scaletrain bench collective`: a rank that takes orders and runs Gloo's all_reduce and all_gather over TCP on the loopback
// device. Its reduce_scatter has another form (halving and doubling, in place) and is not compared.
//
// Usage: collective_gloo FOLDER RANKS RANK
#include <gloo/allgatherv.h>
#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "collective_probe.h"

namespace {

std::shared_ptr<gloo::Context> connect(const std::string& folder, int rank, int size) {
  gloo::transport::tcp::attr attributes;
  attributes.iface = "lo";
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
  std::filesystem::create_directories(folder + "/store");
  gloo::rendezvous::FileStore store(folder + "/store");
  auto device = gloo::transport::tcp::CreateDevice(attributes);
  context->connectFullMesh(store, device);
  return context;
}

class GlooCalls final : public cli::CollectiveCalls {
 public:
  GlooCalls(std::shared_ptr<gloo::Context> context, int rank, int size) : CollectiveCalls(rank, size), context_(std::move(context)) {}

  bool has(cli::Exchange exchange) const override { return exchange != cli::Exchange::reduce_scatter; }

  void all_reduce(float* data, int64_t elements) override {
    gloo::AllreduceOptions options(context_);
    options.setOutput(data, static_cast<size_t>(elements));
    options.setReduceFunction(static_cast<void (*)(void*, const void*, const void*, size_t)>(&gloo::sum<float>));
    gloo::allreduce(options);
  }
  void all_gather(const float* own, float* whole, int64_t elements) override {
    std::vector<size_t> counts;
    for (int r = 0; r < size(); ++r) counts.push_back(static_cast<size_t>(share_begin(elements, r + 1) - share_begin(elements, r)));
    gloo::AllgathervOptions options(context_);
    options.setInput(const_cast<float*>(own), counts[static_cast<size_t>(rank())]);
    options.setOutput(whole, counts);
    gloo::allgatherv(options);
  }
  void reduce_scatter(const float*, float*, int64_t) override { throw std::logic_error("Gloo's reduce_scatter is not compared"); }

 private:
  std::shared_ptr<gloo::Context> context_;
};

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) return 2;
  try {
    const std::string folder = arguments[1];
    const int size = std::atoi(arguments[2]), rank = std::atoi(arguments[3]);
    GlooCalls calls(connect(folder, rank, size), rank, size);
    cli::serve_collectives(calls, folder);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "collective_gloo: %s\n", error.what());
    return 3;
  }
}
