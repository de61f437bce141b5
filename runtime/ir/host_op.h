// Ops that the host defines. A node names one by its id, so that graphs stay values. This registry maps the id to the callbacks, for the
// shape rule when a graph is built or bound and for the kernels when it runs.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace st {

constexpr int32_t kMaxHostOutputs = 8;
constexpr int32_t kMaxHostInputs = 32;  // a call's views fit on the stack

/// A type as a callback returns it; untrusted until the shape rule `host` has checked it.
struct HostType {
  int32_t dtype = 0, rank = 0;
  std::array<int64_t, kMaxDims> dims{};
};

/// Row-major, contiguous, borrowed during the call. data null: this gradient is not wanted or not known.
struct OpView {
  DType dtype = DType::f32;
  std::span<const int64_t> dims;
  void* data = nullptr;
  int64_t bytes = 0;
};

/// Each callback returns 0, or its own status, which becomes Error(Code::callback). The library holds no lock during the call; if several
/// threads run the graph, they call it concurrently.
struct HostOp {
  using Shapes = std::function<int32_t(std::span<const HostType> in, std::span<HostType> out)>;
  using Forward = std::function<int32_t(std::span<const OpView> in, std::span<const OpView> out)>;
  using Backward = std::function<int32_t(std::span<const OpView> in, std::span<const OpView> out, std::span<const OpView> d_out,
                                         std::span<const OpView> d_in)>;
  std::string name;
  int32_t outputs = 1;
  Shapes shape;
  Forward forward;
  Backward backward;  // empty: not differentiable
};

/// The op of an id, alive as long as the caller holds it. Throws invalid_argument that begins with `rule` if its owner is destroyed.
std::shared_ptr<const HostOp> host_op_of(std::string_view rule, int64_t id);

/// The ops that the graphs of one context may use by name. They live as long as the context, which its models keep alive. Thread-safe.
class HostOps {
 public:
  HostOps();
  ~HostOps();
  HostOps(const HostOps&) = delete;
  HostOps& operator=(const HostOps&) = delete;

  /// Throws invalid_argument for an invalid name, a name in ops.def, a duplicate, missing callbacks, a wrong number of outputs.
  void add(HostOp op);
  /// Attributes for Builder::append(Op::host, inputs, attrs); null: no such op in this context.
  std::unique_ptr<Attrs> attrs_of(std::string_view name) const;
  std::vector<std::string> names() const;

 private:
  struct Registry;
  friend std::shared_ptr<const HostOp> host_op_of(std::string_view rule, int64_t id);
  static const std::shared_ptr<Registry>& registry();

  std::shared_ptr<Registry> registry_;  // shared, since contexts may be destroyed after the library's statics
  mutable std::mutex mutex_;
  std::map<std::string, int64_t, std::less<>> ids_;
};

}  // namespace st
