#include "ir/host_op.h"

#include <algorithm>
#include <shared_mutex>
#include <utility>

#include "base/error.h"
#include "base/heap.h"

namespace st {

/// Ids are never reused, so a graph that outlived its context by mistake finds no op instead of a wrong one.
struct HostOps::Registry {
  mutable std::shared_mutex mutex;  // shared, since predictors look ops up concurrently
  std::map<int64_t, std::shared_ptr<const HostOp>> ops;
  int64_t next = 1;
};

const std::shared_ptr<HostOps::Registry>& HostOps::registry() {
  static const auto shared = once_for_the_process([] { return std::make_shared<Registry>(); });
  return shared;
}

namespace {

constexpr size_t kMaxName = 64;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

bool is_name(std::string_view name) {
  const auto fits = [](char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-'; };
  return !name.empty() && name.size() <= kMaxName && is_letter(name[0]) && std::ranges::all_of(name, fits);
}

bool is_in_ops_def(std::string_view name) {
  for (int32_t i = 0; i < kOps; ++i)
    if (name_of(static_cast<Op>(i)) == name) return true;
  return false;
}

void check_op(const HostOp& op) {
  check(is_name(op.name), "host op: name \"", op.name.substr(0, kMaxName),
        "\" must be a letter followed by letters, digits, _ . or -, at most ", kMaxName, " characters");
  check(!is_in_ops_def(op.name), "host op: \"", op.name, "\" is an op of the library; choose another name");
  check(op.outputs >= 1 && op.outputs <= kMaxHostOutputs, "host op: \"", op.name, "\" must have 1 to ", kMaxHostOutputs, " outputs, got ",
        op.outputs);
  check(op.shape != nullptr, "host op: \"", op.name, "\" has no shape callback, which is needed to infer the output types");
  check(op.forward != nullptr, "host op: \"", op.name, "\" has no forward callback");
}

}  // namespace

std::shared_ptr<const HostOp> host_op_of(std::string_view rule, int64_t id) {
  const auto& registry = *HostOps::registry();
  const std::shared_lock lock(registry.mutex);
  const auto found = registry.ops.find(id);
  check(found != registry.ops.end(), rule, ": host op ", id, " is gone; keep the context that registered it alive");
  return found->second;
}

HostOps::HostOps() : registry_(registry()) {}

HostOps::~HostOps() {
  const std::unique_lock lock(registry_->mutex);
  for (const auto& [name, id] : ids_) registry_->ops.erase(id);
}

void HostOps::add(HostOp op) {
  check_op(op);
  const std::lock_guard own(mutex_);
  check(!ids_.contains(op.name), "host op: \"", op.name, "\" is already registered; choose another name");
  std::string name = op.name;
  auto shared = std::make_shared<const HostOp>(std::move(op));
  const std::unique_lock lock(registry_->mutex);
  const int64_t id = registry_->next;
  const auto named = ids_.emplace(std::move(name), id).first;
  try {
    registry_->ops.emplace(id, std::move(shared));
  } catch (...) {
    ids_.erase(named);
    throw;
  }
  ++registry_->next;
}

std::unique_ptr<Attrs> HostOps::attrs_of(std::string_view name) const {
  const std::lock_guard own(mutex_);
  const auto found = ids_.find(name);
  if (found == ids_.end()) return nullptr;
  return std::make_unique<Attrs>(Attrs{{"name", found->first}, {"id", found->second}});
}

std::vector<std::string> HostOps::names() const {
  const std::lock_guard own(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, id] : ids_) names.push_back(name);
  return names;
}

}  // namespace st
