// A library as the opponent of `bench gemm`, in a process of its own that works only when it is asked. So its symbols and its threads'
// runtime do not meet those of other libraries, OPENBLAS_CORETYPE is read anew, and it keeps its own waiting manners, the fastest for it:
// while others are measured the whole process is stopped, and nothing of it spins on their cores.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <stdexcept>
#include <string>

#include "gemm_shapes.h"

namespace cli {

class GemmPeer {
 public:
  /// The process or the library failed, or is not there; what() is the reason. A wrong product is a Failure instead.
  struct Gone : std::runtime_error {
    using std::runtime_error::runtime_error;
  };

  /// `name`: openblas, openblas-haswell, blis, mkl, onednn or onednn-openmp. Forks: no thread of this process may run yet. Throws Gone.
  GemmPeer(std::string name, int64_t threads);
  ~GemmPeer();
  GemmPeer(const GemmPeer&) = delete;
  GemmPeer& operator=(const GemmPeer&) = delete;

  const std::string& name() const { return name_; }

  struct Can {
    bool multiply, pack;
  };
  /// Prepares for a shape. Returns whether it has products of such elements, and with a packed B.
  Can open(const GemmShape& shape);
  /// GemmSampler::seconds() and check() over there.
  double seconds(uint64_t seed, bool packed);
  void check(uint64_t seed, bool packed);

 private:
  struct Request;
  struct Answer;
  [[noreturn]] static void serve(const std::string& name, int64_t threads, int channel);
  Answer ask_child(const Request& request);
  Answer answer();
  void end_child();

  std::string name_;
  pid_t child_ = -1;
  int channel_ = -1;
};

}  // namespace cli
