#include "one_thread.h"

namespace cli {

OneThread::OneThread() : peak_(1) {
  st_context_options options;
  ask(st_context_options_init(&options, sizeof options));
  options.threads = 1;
  context_ = make<Context>(st_context_create, &options);
}

void OneThread::open(GemmOperands& operands) {
  operands_ = &operands;
  sampler_.reset();
  own_.emplace(context_);
  sampler_.emplace(*own_, operands);
}

OneThread::Sample OneThread::sample(uint64_t seed) {
  const double speed = flops_of(operands_->shape()) / sampler_->seconds(seed, false), peak = peak_.measure_now();
  sampler_->check(seed, false);
  return {speed, peak};
}

}  // namespace cli
