#include "comm/nccl/nccl_group.h"

#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/float_mode.h"
#include "base/text.h"

namespace st::nccl {
namespace {

ncclDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return ncclFloat32;
    case DType::f64:
      return ncclFloat64;
    case DType::bf16:
      return ncclBfloat16;
    case DType::f16:
      return ncclFloat16;
    case DType::u8:
      return ncclUint8;
    default:
      fail(Code::unsupported, text("nccl: collectives are of f32, f64, bf16, f16 and u8, got ", name_of(dtype)));
  }
}

}  // namespace

void Group::make_id(const Library& library, std::span<std::byte> id) {
  const HostsFloatMode mode;  // for the thread that it starts
  ncclUniqueId unique;
  require(std::ssize(id) == kIdBytes, Code::internal, "nccl: an id of ", id.size(), " bytes");
  library.must(library.ncclGetUniqueId(&unique), "ncclGetUniqueId");
  std::memcpy(id.data(), unique.internal, id.size());
}

Group::Group(std::shared_ptr<const Library> library, std::span<const std::byte> id, int rank, int size) : library_(std::move(library)) {
  const HostsFloatMode mode;
  ncclUniqueId unique;
  require(std::ssize(id) == kIdBytes, Code::internal, "nccl: an id of ", id.size(), " bytes");
  std::memcpy(unique.internal, id.data(), id.size());
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  const ncclResult_t begun = library_->ncclCommInitRankConfig(&comm_, size, unique, rank, &config);
  if (begun == ncclSuccess || begun == ncclInProgress) return;
  const ncclComm_t refused = std::exchange(comm_, nullptr);
  if (refused != nullptr) library_->ncclCommAbort(refused);
  library_->must(begun, "ncclCommInitRankConfig");
}

ncclComm_t Group::usable() const {
  require(comm_ != nullptr, Code::unavailable, "nccl: the communicator was aborted after an earlier error; make new ranks");
  return comm_;
}

void Group::begin() {
  usable();
  library_->must(library_->ncclGroupStart(), "ncclGroupStart");
}

void Group::send(int to, const void* data, size_t bytes, cudaStream_t stream) {
  library_->must(library_->ncclSend(data, bytes, ncclUint8, to, usable(), stream), "ncclSend", comm_);
}

void Group::receive(int from, void* data, size_t bytes, cudaStream_t stream) {
  library_->must(library_->ncclRecv(data, bytes, ncclUint8, from, usable(), stream), "ncclRecv", comm_);
}

void Group::all_reduce(const void* from, void* to, size_t elements, DType dtype, cudaStream_t stream) {
  library_->must(library_->ncclAllReduce(from, to, elements, type_of(dtype), ncclSum, usable(), stream), "ncclAllReduce", comm_);
}

void Group::reduce_scatter(const void* from, void* to, size_t elements, DType dtype, cudaStream_t stream) {
  library_->must(library_->ncclReduceScatter(from, to, elements, type_of(dtype), ncclSum, usable(), stream), "ncclReduceScatter", comm_);
}

void Group::all_gather(const void* from, void* to, size_t elements, DType dtype, cudaStream_t stream) {
  library_->must(library_->ncclAllGather(from, to, elements, type_of(dtype), usable(), stream), "ncclAllGather", comm_);
}

void Group::reduce(const void* from, void* to, size_t elements, DType dtype, int root, cudaStream_t stream) {
  library_->must(library_->ncclReduce(from, to, elements, type_of(dtype), ncclSum, root, usable(), stream), "ncclReduce", comm_);
}

void Group::broadcast(const void* from, void* to, size_t elements, DType dtype, int root, cudaStream_t stream) {
  library_->must(library_->ncclBroadcast(from, to, elements, type_of(dtype), root, usable(), stream), "ncclBroadcast", comm_);
}

void Group::end() { library_->must(library_->ncclGroupEnd(), "ncclGroupEnd", comm_); }

bool Group::is_ready() {
  ncclResult_t state = ncclSuccess;
  library_->must(library_->ncclCommGetAsyncError(usable(), &state), "ncclCommGetAsyncError", comm_);
  library_->must(state, "an operation of the communicator", comm_);
  return state == ncclSuccess;
}

void Group::abort() noexcept {
  const ncclComm_t ended = std::exchange(comm_, nullptr);
  if (ended != nullptr) library_->ncclCommAbort(ended);
}

}  // namespace st::nccl
