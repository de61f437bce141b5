// libnccl.so.2 in the place of NVIDIA's, by its own declarations, on streams of simulated_stream.h: between threads and processes of one
// machine, by files in a folder of /dev/shm that the unique id names. As the real one may, it takes its time: a communicator, and the
// operations of a group, are in progress until the second call of ncclCommGetAsyncError, and only then in their streams; a call before that
// is refused. An operation of a communicator is refused too while the device has one of another communicator under way, which the real one
// may never end where ranks have the two in different orders. Its own collectives add as a ring does: the terms of what a rank owns come
// from the rank after it first, and each sum is rounded to the type; all ranks get the same bits. ST_FAKE_NCCL is what goes wrong,
// KIND:RANK (of the communicator):
//   start   the rank never connects            async  an error of the rank's first operation, while it is under way
//   lost    the rank's elements never arrive   exit   the rank's process ends when its first operation is given, or stops (stop)
// Operations take 2 ms longer on devices from ST_FAKE_NCCL_SLOW on. To the file of the name ST_FAKE_NCCL_ORDER and the device's number goes
// a letter for each operation that the device is given: a of the process's first communicator, b of its second; after it + for each of
// NCCL's own collectives that is in it.
// ST_FAKE_NCCL_VERSION is its version code. Compiled with ST_LACKS_NAME it has no ncclRecv.
#include <fcntl.h>
#include <nccl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/combine.h"
#include "simulated_stream.h"

namespace {

std::string_view environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool is_there(const std::string& file) { return access(file.c_str(), F_OK) == 0; }

/// Whole at once, for those who look for it.
void write_file(const std::string& file, const void* data, size_t bytes) {
  const std::string part = file + ".part";
  FILE* const to = std::fopen(part.c_str(), "wb");
  if (bytes > 0) std::fwrite(data, 1, bytes, to);
  std::fclose(to);
  std::rename(part.c_str(), file.c_str());
}

/// Whether it has exactly these bytes; removes it.
bool read_file(const std::string& file, void* data, size_t bytes) {
  FILE* const from = std::fopen(file.c_str(), "rb");
  const bool fits = std::fread(data, 1, bytes, from) == bytes && std::fgetc(from) == EOF;
  std::fclose(from);
  unlink(file.c_str());
  return fits;
}

/// The part of a communicator that work of streams reads; it outlives an abort.
struct State {
  std::atomic<bool> is_aborted = false, has_failed = false;
};

std::array<std::atomic<const State*>, 16> under_way{};  // by device: of the communicator whose operation runs

bool begin_operation(int device, const State* own) {
  const State* other = nullptr;
  return under_way[static_cast<size_t>(device)].compare_exchange_strong(other, own);
}

void end_operation(int device, const State* own) { under_way[static_cast<size_t>(device)].compare_exchange_strong(own, nullptr); }

using Bytes = std::vector<std::byte>;

struct Operation {
  std::string file;
  void* data;
  size_t bytes;
  bool sends;
  std::shared_ptr<Bytes> terms = {};  // what is received goes here instead
};

/// A sum of terms of all ranks, of which this rank's is in its device's memory.
struct Sum {
  std::vector<std::shared_ptr<Bytes>> terms;  // by rank
  int own;                                    // this rank
  int owner;                                  // whose the sum is in the ring
  const std::byte* from;
  std::byte* to;
  st::DType dtype;
  int64_t elements;

  /// All read before any is written.
  Bytes made(const std::byte* own_terms) const {
    const auto ranks = static_cast<int>(terms.size());
    Bytes wide(static_cast<size_t>(elements * st::sum_bytes_of(dtype)));
    for (int step = 1; step <= ranks; ++step) {
      const int rank = (owner + step) % ranks;
      const std::byte* const term = rank == own ? own_terms : terms[static_cast<size_t>(rank)]->data();
      step == 1 ? st::widen(dtype, term, wide.data(), elements) : st::combine_rounded(dtype, term, wide.data(), elements);
    }
    Bytes sums(static_cast<size_t>(elements * st::bytes_of(dtype)));
    st::narrow(dtype, wide.data(), sums.data(), elements);
    return sums;
  }
};

/// A copy of a rank's own elements, from one place of its device to another.
struct OwnCopy {
  const void* from;
  void* to;
  size_t bytes;
};

/// A group of calls.
struct Calls {
  std::vector<Operation> operations = {};
  std::vector<Sum> sums = {};
  std::vector<OwnCopy> copies = {};
  int collectives = 0;

  bool is_empty() const { return operations.empty() && copies.empty() && collectives == 0; }
};

}  // namespace

struct ncclComm {
  std::string folder, last_error;
  int rank, size, device;
  char letter;
  std::vector<int> sent, received;  // by rank: how many
  std::shared_ptr<State> state = std::make_shared<State>();
  bool is_connected = false;
  int polls = 0;  // since something has begun
  cudaStream_t stream = nullptr;
  Calls given = {};  // of a group, not in the stream yet
  bool has_given = false;

  bool goes_wrong(std::string_view kind) const { return environment("ST_FAKE_NCCL") == std::string(kind) + ":" + std::to_string(rank); }
  std::string file_of_rank(int other) const { return folder + "/rank_" + std::to_string(other); }
};

namespace {

std::atomic<int (*)()> current_device = nullptr;  // of the runtime, which each thread names; null: there is none
std::atomic<bool (*)()> is_failing = nullptr;     // asked by what a start needs; null: nothing fails
std::atomic<int> alive = 0;                       // communicators
thread_local std::vector<ncclComm*> group;
thread_local int depth = 0;

bool fails() { return is_failing.load() != nullptr && is_failing.load()(); }

ncclResult_t refuse(ncclComm* of, ncclResult_t why, const char* words) {
  if (of != nullptr) of->last_error = words;
  return why;
}

/// Takes the communicator into the open group.
ncclResult_t enlist(ncclComm* of, cudaStream_t stream) {
  const bool is_in_group = std::find(group.begin(), group.end(), of) != group.end();
  if (!of->is_connected || (!is_in_group && !of->given.is_empty()) || depth != 1)
    return refuse(of, ncclInvalidUsage, "the communicator is not ready, or there is no group");
  if (of->stream != nullptr && of->stream != stream) return refuse(of, ncclInvalidUsage, "one stream for a group");
  if (stream->device != of->device) return refuse(of, ncclInvalidUsage, "a stream of another device");
  of->stream = stream;
  if (!is_in_group) group.push_back(of);
  return ncclSuccess;
}

/// With or from another rank.
Operation next_operation(ncclComm* of, int other, void* data, size_t bytes, bool sends) {
  int& number = (sends ? of->sent : of->received)[static_cast<size_t>(other)];
  const int from = sends ? of->rank : other, to = sends ? other : of->rank;
  return {of->folder + "/" + std::to_string(from) + "_" + std::to_string(to) + "_" + std::to_string(number++), data, bytes, sends};
}

ncclResult_t add(ncclComm* of, int other, void* data, size_t count, ncclDataType_t type, cudaStream_t stream, bool sends) {
  if (type != ncclUint8 || count == 0 || other < 0 || other >= of->size || other == of->rank)
    return refuse(of, ncclInvalidArgument, "the fake takes bytes of other ranks");
  if (const ncclResult_t taken = enlist(of, stream); taken != ncclSuccess) return taken;
  of->given.operations.push_back(next_operation(of, other, data, count, sends));
  return ncclSuccess;
}

st::DType dtype_of(ncclDataType_t type) {
  switch (type) {
    case ncclFloat32:
      return st::DType::f32;
    case ncclFloat64:
      return st::DType::f64;
    case ncclBfloat16:
      return st::DType::bf16;
    case ncclFloat16:
      return st::DType::f16;
    default:
      return st::DType::u8;
  }
}

/// A collective of the whole group, whose parts are added with these calls.
class Collective {
 public:
  Collective(ncclComm* of, const void* from, void* to, ncclDataType_t type)
      : of_(of), from_(static_cast<const std::byte*>(from)), to_(static_cast<std::byte*>(to)), dtype_(dtype_of(type)) {
    ++of->given.collectives;
  }

  /// Rank `to` gets these elements, which begin at `first` of what this rank reads.
  void send(int to, int64_t first, int64_t elements) {
    if (to == of_->rank || elements == 0) return;
    of_->given.operations.push_back(next_operation(of_, to, const_cast<std::byte*>(from_) + bytes(first), bytes(elements), true));
  }
  /// Puts what another rank sends at element `first` of this rank's result.
  void receive(int from, int64_t first, int64_t elements) {
    if (from == of_->rank || elements == 0) return;
    of_->given.operations.push_back(next_operation(of_, from, to_ + bytes(first), bytes(elements), false));
  }
  /// The sum of what all ranks have sent, as that of `owner` in the ring.
  void add(int owner, int64_t from, int64_t to, int64_t elements) {
    if (elements == 0) return;
    Sum sum{{}, of_->rank, owner, from_ + bytes(from), to_ + bytes(to), dtype_, elements};
    for (int rank = 0; rank < of_->size; ++rank) {
      sum.terms.push_back(std::make_shared<Bytes>(rank == of_->rank ? 0 : bytes(elements)));
      if (rank == of_->rank) continue;
      of_->given.operations.push_back(next_operation(of_, rank, nullptr, bytes(elements), false));
      of_->given.operations.back().terms = sum.terms.back();
    }
    of_->given.sums.push_back(std::move(sum));
  }
  void copy(int64_t to, int64_t elements) {
    if (from_ != to_ + bytes(to)) of_->given.copies.push_back({from_, to_ + bytes(to), bytes(elements)});
  }

 private:
  size_t bytes(int64_t elements) const { return static_cast<size_t>(elements * st::bytes_of(dtype_)); }

  ncclComm* const of_;
  const std::byte* const from_;
  std::byte* const to_;
  const st::DType dtype_;
};

/// Sends, receives once all that is received is there, and ends once all that was sent has been received, as a send of the real one may.
void give(ncclComm* of) {
  const auto all = std::make_shared<Calls>(std::move(of->given));
  of->given = {};
  const cudaStream_t stream = std::exchange(of->stream, nullptr);
  const std::shared_ptr<State> state = of->state;
  const int device = of->device;
  if (of->goes_wrong("exit")) _exit(3);
  if (of->goes_wrong("stop")) raise(SIGSTOP);
  if (!of->goes_wrong("lost"))
    stream->give([=] {
      for (const Operation& operation : all->operations)
        if (operation.sends && !state->is_aborted) write_file(operation.file, stream->followed(*stream, operation.data), operation.bytes);
    });
  if (const std::string order(environment("ST_FAKE_NCCL_ORDER")); !order.empty()) {
    FILE* const to = std::fopen((order + std::to_string(device)).c_str(), "ab");
    std::fputs((of->letter + std::string(static_cast<size_t>(all->collectives), '+')).c_str(), to);
    std::fclose(to);
  }
  const std::string slow(environment("ST_FAKE_NCCL_SLOW"));
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now() + std::chrono::milliseconds(!slow.empty() && device >= std::atoi(slow.c_str()) ? 2 : 0);
  const bool never = of->goes_wrong("async");
  const auto is_ready = [=] {
    if (state->is_aborted) return true;
    for (const Operation& operation : all->operations)
      if (!operation.sends && !is_there(operation.file)) return false;
    return !never && Clock::now() >= begin;
  };
  stream->engine->give_when(*stream->queue, is_ready, [=] {
    const auto here = [&](const void* place) { return static_cast<std::byte*>(stream->followed(*stream, place)); };
    for (const Operation& operation : all->operations) {
      if (operation.sends || state->is_aborted) continue;
      void* const to = operation.terms ? operation.terms->data() : stream->followed(*stream, operation.data);
      if (!read_file(operation.file, to, operation.bytes)) state->has_failed = true;
    }
    if (state->is_aborted) return;
    std::vector<Bytes> sums;
    for (const Sum& sum : all->sums) sums.push_back(sum.made(here(sum.from)));
    for (size_t i = 0; i < sums.size(); ++i) std::memcpy(here(all->sums[i].to), sums[i].data(), sums[i].size());
    for (const OwnCopy& copy : all->copies) std::memcpy(here(copy.to), here(copy.from), copy.bytes);
  });
  const auto is_taken = [=] {
    if (state->is_aborted) return true;
    return std::none_of(all->operations.begin(), all->operations.end(),
                        [](const Operation& operation) { return operation.sends && is_there(operation.file); });
  };
  stream->engine->give_when(*stream->queue, is_taken, [=] { end_operation(device, state.get()); });
}

bool is_everyone_there(ncclComm* of) {
  for (int rank = 0; rank < of->size; ++rank)
    if (!is_there(of->file_of_rank(rank))) return false;
  return true;
}

/// Whether an earlier rank of this machine has the device.
bool is_duplicate(ncclComm* of) {
  for (int rank = 0; rank < of->rank; ++rank) {
    int device = -1;
    FILE* const file = std::fopen(of->file_of_rank(rank).c_str(), "rb");
    if (std::fread(&device, sizeof device, 1, file) != 1) device = -1;
    std::fclose(file);
    if (device == of->device) return true;
  }
  return false;
}

}  // namespace

extern "C" {

void ncclFakeAsksDevice(int (*current)()) { current_device = current; }
void ncclFakeAsksFailure(bool (*ask)()) { is_failing = ask; }
int ncclFakeAlive() { return alive; }

ncclResult_t ncclGetVersion(int* version) {
  const std::string given(environment("ST_FAKE_NCCL_VERSION"));
  *version = given.empty() ? NCCL_VERSION_CODE : std::atoi(given.c_str());
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclInvalidArgument:
      return "invalid argument";
    case ncclInvalidUsage:
      return "invalid usage";
    case ncclSystemError:
      return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    default:
      return "internal error";
  }
}

const char* ncclGetLastError(ncclComm_t comm) { return comm == nullptr ? "" : comm->last_error.c_str(); }

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static std::atomic<int> made = 0;
  std::snprintf(id->internal, sizeof id->internal, "/dev/shm/st_fake_nccl_%d_%d", getpid(), ++made);
  return !fails() && mkdir(id->internal, 0700) == 0 ? ncclSuccess : ncclSystemError;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId id, int rank, ncclConfig_t* config) {
  if (config == nullptr || config->magic != 0xcafebeef || config->blocking != 0 || rank < 0 || rank >= size) return ncclInvalidArgument;
  static std::atomic<int> made = 0;
  if (fails()) return ncclSystemError;
  ++alive;
  const auto ranks = static_cast<size_t>(size);
  *comm = new ncclComm{.folder = id.internal,
                       .last_error = {},
                       .rank = rank,
                       .size = size,
                       .device = current_device.load() == nullptr ? 0 : current_device.load()(),
                       .letter = static_cast<char>('a' + made++),
                       .sent = std::vector<int>(ranks),
                       .received = std::vector<int>(ranks)};
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  *error = ncclInProgress;
  ++comm->polls;
  if (!comm->is_connected) {
    if (comm->polls == 1 || comm->goes_wrong("start")) return ncclSuccess;
    const bool is_first = !is_there(comm->file_of_rank(comm->rank));
    if (is_first && fails()) {
      *error = ncclSystemError;
      return ncclSuccess;
    }
    if (is_first) write_file(comm->file_of_rank(comm->rank), &comm->device, sizeof comm->device);
    if (!is_everyone_there(comm)) return ncclSuccess;
    if (is_duplicate(comm)) {
      comm->last_error = "Duplicate GPU detected";
      *error = ncclInvalidUsage;
      return ncclSuccess;
    }
    comm->is_connected = true;
  }
  if (comm->has_given && !comm->given.is_empty()) {
    if (comm->polls == 1) return ncclSuccess;
    give(comm);
  }
  *error = comm->state->has_failed ? ncclInternalError : comm->has_given && comm->goes_wrong("async") ? ncclRemoteError : ncclSuccess;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  comm->state->is_aborted = true;
  end_operation(comm->device, comm->state.get());
  write_file(comm->folder + "/end_" + std::to_string(comm->rank), nullptr, 0);
  bool is_last = true;
  for (int rank = 0; rank < comm->size; ++rank) is_last = is_last && is_there(comm->folder + "/end_" + std::to_string(rank));
  std::error_code ignored;                                          // two ranks may both be the last
  if (is_last) std::filesystem::remove_all(comm->folder, ignored);  // with what nobody has received
  --alive;
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (--depth > 0) return ncclSuccess;
  for (ncclComm* const comm : group) {
    if (!begin_operation(comm->device, comm->state.get())) {
      group.clear();
      return refuse(comm, ncclInvalidUsage, "the device has another operation under way");
    }
    comm->has_given = true;
    comm->polls = 0;
  }
  const bool any = !group.empty();
  group.clear();
  return any ? ncclInProgress : ncclSuccess;
}

ncclResult_t ncclSend(const void* data, size_t count, ncclDataType_t type, int to, ncclComm_t comm, cudaStream_t stream) {
  return add(comm, to, const_cast<void*>(data), count, type, stream, true);
}

ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                           cudaStream_t stream) {
  if (op != ncclSum) return refuse(comm, ncclInvalidArgument, "the fake adds");
  if (const ncclResult_t taken = enlist(comm, stream); taken != ncclSuccess) return taken;
  const auto share = [&](int rank) { return static_cast<int64_t>(count) * rank / comm->size; };
  Collective call(comm, from, to, type);
  for (int owner = 0; owner < comm->size; ++owner)
    for (int other = 0; other < comm->size; ++other) call.send(other, share(owner), share(owner + 1) - share(owner));
  for (int owner = 0; owner < comm->size; ++owner) call.add(owner, share(owner), share(owner), share(owner + 1) - share(owner));
  return ncclSuccess;
}

ncclResult_t ncclReduceScatter(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                               cudaStream_t stream) {
  if (op != ncclSum) return refuse(comm, ncclInvalidArgument, "the fake adds");
  if (const ncclResult_t taken = enlist(comm, stream); taken != ncclSuccess) return taken;
  const auto each = static_cast<int64_t>(count);
  Collective call(comm, from, to, type);
  for (int other = 0; other < comm->size; ++other) call.send(other, other * each, each);
  call.add(comm->rank, comm->rank * each, 0, each);
  return ncclSuccess;
}

ncclResult_t ncclAllGather(const void* from, void* to, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream) {
  if (const ncclResult_t taken = enlist(comm, stream); taken != ncclSuccess) return taken;
  const auto each = static_cast<int64_t>(count);
  Collective call(comm, from, to, type);
  for (int other = 0; other < comm->size; ++other) {
    call.send(other, 0, each);
    call.receive(other, other * each, each);
  }
  call.copy(comm->rank * each, each);
  return ncclSuccess;
}

ncclResult_t ncclReduce(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t op, int root, ncclComm_t comm,
                        cudaStream_t stream) {
  if (op != ncclSum || root < 0 || root >= comm->size) return refuse(comm, ncclInvalidArgument, "the fake adds, at a rank");
  if (const ncclResult_t taken = enlist(comm, stream); taken != ncclSuccess) return taken;
  Collective call(comm, from, to, type);
  call.send(root, 0, static_cast<int64_t>(count));
  if (root == comm->rank) call.add(root, 0, 0, static_cast<int64_t>(count));
  return ncclSuccess;
}

ncclResult_t ncclBroadcast(const void* from, void* to, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream) {
  if (root < 0 || root >= comm->size) return refuse(comm, ncclInvalidArgument, "no such root");
  if (const ncclResult_t taken = enlist(comm, stream); taken != ncclSuccess) return taken;
  const auto elements = static_cast<int64_t>(count);
  Collective call(comm, from, to, type);
  if (root != comm->rank) {
    call.receive(root, 0, elements);
    return ncclSuccess;
  }
  for (int other = 0; other < comm->size; ++other) call.send(other, 0, elements);
  call.copy(0, elements);
  return ncclSuccess;
}

#ifndef ST_LACKS_NAME
ncclResult_t ncclRecv(void* data, size_t count, ncclDataType_t type, int from, ncclComm_t comm, cudaStream_t stream) {
  return add(comm, from, data, count, type, stream, false);
}
#endif

}  // extern "C"
