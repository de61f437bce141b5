#include "tuning/product_tuner.h"

#include <algorithm>
#include <map>

#include "backend/needs.h"
#include "base/os/cpu.h"
#include "base/os/machine.h"
#include "gemm/gemm_library.h"

namespace st {
namespace {

constexpr double kAll = 60, kShortest = 1, kLongest = 10;  // seconds: all products, and one
constexpr double kRuns = 60;                               // of the product, to tell its candidates apart

class ProductTuner {
 public:
  ProductTuner(Context& context, Workers& workers, GemmContest contest)
      : context_(context),
        workers_(workers),
        machine_(profile_of(context.backend(), workers.threads())),
        contest_(std::move(contest)),
        tuner_(context.tuner()) {}

  ProductTiles tiles_of(const Section& section, const Node& node) {
    std::vector<Type> in;
    for (const Value v : node.in) in.push_back(section.graph.type(v));
    const auto problem = tiled_product(machine_, node.op, in, node.out, node.attrs);
    if (!problem) return {};
    const std::string key = tuning_key(os::cpu(), machine_.kernel_class, *problem, {}, false, machine_.threads);
    const auto [known, is_new] = known_.try_emplace(key);
    if (is_new) known->second = tuned(*problem);
    return known->second;
  }

 private:
  ProductTiles tuned(const GemmProblem& problem) {
    const double begin = os::seconds();
    const GemmChoice standard = choose_gemm(context_.backend().gemm(), problem, {}, workers_.threads());
    const double rate = predicted_rate(standard, context_.backend().kernel_class(), workers_.threads());
    const double wanted = rate > 0 ? std::clamp(kRuns * flops_of(problem) / rate, kShortest, kLongest) : 0;
    const GemmChoice choice = tuner_.tuned(standard, {}, workers_, std::min(wanted, left_), contest_);
    left_ = std::max(0.0, left_ - (os::seconds() - begin));
    if (choice.schedule == standard.schedule) return {};
    if (choice.schedule.library != nullptr) return {.tiles = {}, .library = choice.schedule.library->identity()};
    const TileSizes sizes = sizes_of(choice.schedule);
    return {.tiles = {sizes.begin(), sizes.end()}, .library = {}};
  }

  Context& context_;
  Workers& workers_;
  const MachineProfile machine_;
  GemmContest contest_;
  GemmTuner tuner_;
  double left_ = kAll;
  std::map<std::string, ProductTiles> known_;
};

}  // namespace

TileChoice measured_tiles(Context& context, Workers& workers, const GemmContest& contest) {
  return [tuner = std::make_shared<ProductTuner>(context, workers, contest)](const Program&, const Section& section, const Node& node) {
    return tuner->tiles_of(section, node);
  };
}

}  // namespace st
