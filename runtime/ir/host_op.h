// Ops of the host's own. A node names one by its id, so that graphs stay values; this registry finds the callbacks behind the id, for the
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
constexpr int32_t kMaxHostInputs = 32;  // so that a call's views lie on the stack

/// A type as callbacks say it: nothing in it is true before shape rule `host` has looked at it.
struct HostType {
  int32_t dtype = 0, rank = 0;
  std::array<int64_t, kMaxDims> dims{};
};

/// Row-major, contiguous, borrowed during the call; data null: no gradient is wanted or known there.
struct OpView {
  DType dtype = DType::f32;
  std::span<const int64_t> dims;
  void* data = nullptr;
  int64_t bytes = 0;
};

/// Each callback returns 0, or a status of its own that becomes Error(Code::callback). Called with no lock of ours held, by several threads
/// at once when several run the graph.
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

/// The op behind an id, kept for as long as the caller holds it. Throws invalid_argument, with `rule` first, when its owner is gone.
std::shared_ptr<const HostOp> host_op_of(std::string_view rule, int64_t id);

/// The ops that one context's graphs may use by name. They live as long as it does; its models keep the context alive. Any thread.
class HostOps {
 public:
  HostOps();
  ~HostOps();
  HostOps(const HostOps&) = delete;
  HostOps& operator=(const HostOps&) = delete;

  /// Throws invalid_argument for a bad name, one of ops.def, one that is there already, missing callbacks, a wrong number of outputs.
  void add(HostOp op);
  /// Attributes of the node: Builder::append(Op::host, inputs, attrs). Null: no such op here.
  std::unique_ptr<Attrs> attrs_of(std::string_view name) const;
  std::vector<std::string> names() const;

 private:
  struct Registry;
  friend std::shared_ptr<const HostOp> host_op_of(std::string_view rule, int64_t id);
  static const std::shared_ptr<Registry>& registry();

  std::shared_ptr<Registry> registry_;  // ours too: contexts may be destroyed after the library's statics
  mutable std::mutex mutex_;
  std::map<std::string, int64_t, std::less<>> ids_;
};

}  // namespace st
