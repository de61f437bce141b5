// Loads kernels ahead. CUDA loads one when it is first launched (CUDA_MODULE_LOADING=LAZY is the default), and may then wait for all that
// the device has to run: for ever, after an exchange with a rank that has ended.
#pragma once

namespace st::cuda {

/// While there is one, launch() on this thread loads kernels into the current context, and runs none. They do not nest.
class LoadingKernels {
 public:
  LoadingKernels() { is_on_ = true; }
  ~LoadingKernels() { is_on_ = false; }
  LoadingKernels(const LoadingKernels&) = delete;
  LoadingKernels& operator=(const LoadingKernels&) = delete;

  static bool is_on() { return is_on_; }

 private:
  inline static constinit thread_local bool is_on_ = false;
};

}  // namespace st::cuda
