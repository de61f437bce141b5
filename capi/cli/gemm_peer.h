// A library as a peer in `bench gemm`, in a process of its own that works only on request. So its symbols and threading runtime do not
// clash with those of other libraries, and OPENBLAS_CORETYPE is read again. The peer keeps its own way of waiting, the fastest for it:
// while others are measured the whole process is stopped, so its threads do not spin on their cores.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <stdexcept>
#include <string>

#include "gemm_shapes.h"

namespace cli {

class GemmPeer {
 public:
  /// The process or the library failed or is missing; what() has the reason. A wrong product is a Failure instead.
  struct Gone : std::runtime_error {
    using std::runtime_error::runtime_error;
  };

  /// `name`: openblas, openblas-haswell, blis, mkl, onednn or onednn-openmp. Forks, so this process must not have started threads yet.
  /// Throws Gone.
  GemmPeer(std::string name, int64_t threads);
  ~GemmPeer();
  GemmPeer(const GemmPeer&) = delete;
  GemmPeer& operator=(const GemmPeer&) = delete;

  const std::string& name() const { return name_; }

  struct Can {
    bool multiply, pack;
  };
  /// Prepares for a shape. Returns whether the peer supports its element type, and a packed B.
  Can open(const GemmShape& shape);
  /// GemmSampler::seconds() and check(), run in the peer.
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
