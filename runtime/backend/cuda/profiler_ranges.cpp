#include "backend/cuda/profiler_ranges.h"

#include <nvtx3/nvToolsExt.h>
#include <array>
#include <string>

namespace st::cuda {
namespace {

/// Null without a profiler.
nvtxDomainHandle_t domain() {
  static const nvtxDomainHandle_t ours = nvtxDomainCreateA("ScaleTrain");
  return ours;
}

/// The names of ops, which the profiler copies once.
const std::array<nvtxStringHandle_t, kOps>& names_of_ops() {
  static const std::array<nvtxStringHandle_t, kOps> names = [] {
    std::array<nvtxStringHandle_t, kOps> made{};
    for (size_t op = 0; op < made.size(); ++op)
      made[op] = nvtxDomainRegisterStringA(domain(), std::string(name_of(static_cast<Op>(op))).c_str());
    return made;
  }();
  return names;
}

nvtxEventAttributes_t attributes(nvtxMessageType_t type, nvtxMessageValue_t message) {
  nvtxEventAttributes_t range{};
  range.version = NVTX_VERSION;
  range.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  range.messageType = type;
  range.message = message;
  return range;
}

}  // namespace

ProfilerRange::ProfilerRange(Op op) {
  if (domain() == nullptr) return;
  nvtxMessageValue_t message{};
  message.registered = names_of_ops()[static_cast<size_t>(op)];
  const nvtxEventAttributes_t range = attributes(NVTX_MESSAGE_TYPE_REGISTERED, message);
  nvtxDomainRangePushEx(domain(), &range);
}

ProfilerRange::ProfilerRange(const char* name) {
  if (domain() == nullptr) return;
  nvtxMessageValue_t message{};
  message.ascii = name;
  const nvtxEventAttributes_t range = attributes(NVTX_MESSAGE_TYPE_ASCII, message);
  nvtxDomainRangePushEx(domain(), &range);
}

ProfilerRange::~ProfilerRange() {
  if (domain() != nullptr) nvtxDomainRangePop(domain());
}

}  // namespace st::cuda
