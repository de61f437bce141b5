// A profiler in the place of NVIDIA's: a library that NVTX loads at NVTX_INJECTION64_PATH. It writes each range as a line to the file
// ST_RANGES when it ends: its depth, its domain and its name.
#include <nvtx3/nvToolsExt.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

namespace {

std::mutex mutex;               // of the names and the file
std::deque<std::string> names;  // of domains and registered strings: handles are their places
thread_local std::vector<std::string> open_ranges;

const void* keep(const char* name) {
  const std::lock_guard lock(mutex);
  return &names.emplace_back(name);
}
nvtxDomainHandle_t NVTX_API create_domain(const char* name) { return reinterpret_cast<nvtxDomainHandle_t>(const_cast<void*>(keep(name))); }
nvtxStringHandle_t NVTX_API register_string(nvtxDomainHandle_t /*domain*/, const char* name) {
  return reinterpret_cast<nvtxStringHandle_t>(const_cast<void*>(keep(name)));
}
int NVTX_API push(nvtxDomainHandle_t /*domain*/, const nvtxEventAttributes_t* range) {
  const bool is_registered = range->messageType == NVTX_MESSAGE_TYPE_REGISTERED;
  open_ranges.push_back(is_registered ? *reinterpret_cast<const std::string*>(range->message.registered) : range->message.ascii);
  return static_cast<int>(open_ranges.size()) - 1;
}
int NVTX_API pop(nvtxDomainHandle_t domain) {
  const std::lock_guard lock(mutex);
  static std::FILE* const file = std::fopen(std::getenv("ST_RANGES"), "w");
  std::fprintf(file, "%zu %s %s\n", open_ranges.size(), reinterpret_cast<const std::string*>(domain)->c_str(), open_ranges.back().c_str());
  std::fflush(file);
  open_ranges.pop_back();
  return static_cast<int>(open_ranges.size());
}

}  // namespace

/// NVTX calls this first: the table's rows are places of its function pointers.
extern "C" int NVTX_API InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table) {
  const auto* const callbacks = static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned int rows = 0;
  if (callbacks == nullptr || callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &rows) == 0) return 0;
  *table[NVTX_CBID_CORE2_DomainCreateA] = reinterpret_cast<NvtxFunctionPointer>(create_domain);
  *table[NVTX_CBID_CORE2_DomainRegisterStringA] = reinterpret_cast<NvtxFunctionPointer>(register_string);
  *table[NVTX_CBID_CORE2_DomainRangePushEx] = reinterpret_cast<NvtxFunctionPointer>(push);
  *table[NVTX_CBID_CORE2_DomainRangePop] = reinterpret_cast<NvtxFunctionPointer>(pop);
  return 1;
}
