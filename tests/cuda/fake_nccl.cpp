// libnccl.so.2 in the place of NVIDIA's, by its own declarations, on streams of simulated_stream.h: between threads and processes of one
// machine, by files in a folder of /dev/shm that the unique id names. As the real one may, it takes its time: a communicator, and the
// operations of a group, are in progress until the second call of ncclCommGetAsyncError, and only then in their streams; a call before that
// is refused. An operation of a communicator is refused too while the device has one of another communicator under way, which the real one
// may never end where ranks have the two in different orders. ST_FAKE_NCCL is what goes wrong, KIND:RANK (of the communicator):
//   start   the rank never connects            async  an error of the rank's first operation, while it is under way
//   lost    the rank's elements never arrive   exit   the rank's process ends when its first operation is given, or stops (stop)
// Operations take 2 ms longer on devices from ST_FAKE_NCCL_SLOW on. To the file of the name ST_FAKE_NCCL_ORDER and the device's number goes
// a letter for each operation that the device is given: a of the process's first communicator, b of its second.
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

struct Operation {
  std::string file;
  void* data;
  size_t bytes;
  bool sends;
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
  std::vector<Operation> given = {};  // of a group, not in the stream yet
  bool has_given = false;

  bool goes_wrong(std::string_view kind) const { return environment("ST_FAKE_NCCL") == std::string(kind) + ":" + std::to_string(rank); }
  std::string file_of_rank(int other) const { return folder + "/rank_" + std::to_string(other); }
};

namespace {

int (*current_device)() = nullptr;  // of the runtime; null: there is none
thread_local std::vector<ncclComm*> group;
thread_local int depth = 0;

ncclResult_t refuse(ncclComm* of, ncclResult_t why, const char* words) {
  if (of != nullptr) of->last_error = words;
  return why;
}

ncclResult_t add(ncclComm* of, int other, void* data, size_t count, ncclDataType_t type, cudaStream_t stream, bool sends) {
  if (type != ncclUint8 || count == 0 || other < 0 || other >= of->size || other == of->rank)
    return refuse(of, ncclInvalidArgument, "the fake takes bytes of other ranks");
  const bool is_in_group = std::find(group.begin(), group.end(), of) != group.end();
  if (!of->is_connected || (!is_in_group && !of->given.empty()) || depth != 1)
    return refuse(of, ncclInvalidUsage, "the communicator is not ready, or there is no group");
  if (of->stream != nullptr && of->stream != stream) return refuse(of, ncclInvalidUsage, "one stream for a group");
  if (stream->device != of->device) return refuse(of, ncclInvalidUsage, "a stream of another device");
  of->stream = stream;
  int& number = (sends ? of->sent : of->received)[static_cast<size_t>(other)];
  const int from = sends ? of->rank : other, to = sends ? other : of->rank;
  of->given.push_back(
      {of->folder + "/" + std::to_string(from) + "_" + std::to_string(to) + "_" + std::to_string(number++), data, count, sends});
  if (!is_in_group) group.push_back(of);
  return ncclSuccess;
}

/// Sends, receives once all that is received is there, and ends once all that was sent has been received, as a send of the real one may.
void give(ncclComm* of) {
  const auto all = std::make_shared<std::vector<Operation>>(std::move(of->given));
  of->given.clear();
  const cudaStream_t stream = std::exchange(of->stream, nullptr);
  const std::shared_ptr<State> state = of->state;
  const int device = of->device;
  if (of->goes_wrong("exit")) _exit(3);
  if (of->goes_wrong("stop")) raise(SIGSTOP);
  if (!of->goes_wrong("lost"))
    stream->give([=] {
      for (const Operation& operation : *all)
        if (operation.sends && !state->is_aborted) write_file(operation.file, stream->followed(*stream, operation.data), operation.bytes);
    });
  if (const std::string order(environment("ST_FAKE_NCCL_ORDER")); !order.empty()) {
    FILE* const to = std::fopen((order + std::to_string(device)).c_str(), "ab");
    std::fputc(of->letter, to);
    std::fclose(to);
  }
  const std::string slow(environment("ST_FAKE_NCCL_SLOW"));
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now() + std::chrono::milliseconds(!slow.empty() && device >= std::atoi(slow.c_str()) ? 2 : 0);
  const bool never = of->goes_wrong("async");
  const auto is_ready = [=] {
    if (state->is_aborted) return true;
    for (const Operation& operation : *all)
      if (!operation.sends && !is_there(operation.file)) return false;
    return !never && Clock::now() >= begin;
  };
  stream->engine->give_when(*stream->queue, is_ready, [=] {
    for (const Operation& operation : *all)
      if (!operation.sends && !state->is_aborted && !read_file(operation.file, stream->followed(*stream, operation.data), operation.bytes))
        state->has_failed = true;
  });
  const auto is_taken = [=] {
    if (state->is_aborted) return true;
    return std::none_of(all->begin(), all->end(), [](const Operation& operation) { return operation.sends && is_there(operation.file); });
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
  return mkdir(id->internal, 0700) == 0 ? ncclSuccess : ncclSystemError;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId id, int rank, ncclConfig_t* config) {
  if (config == nullptr || config->magic != 0xcafebeef || config->blocking != 0 || rank < 0 || rank >= size) return ncclInvalidArgument;
  static std::atomic<int> made = 0;
  const auto ranks = static_cast<size_t>(size);
  *comm = new ncclComm{.folder = id.internal,
                       .last_error = {},
                       .rank = rank,
                       .size = size,
                       .device = current_device == nullptr ? 0 : current_device(),
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
    if (!is_there(comm->file_of_rank(comm->rank))) write_file(comm->file_of_rank(comm->rank), &comm->device, sizeof comm->device);
    if (!is_everyone_there(comm)) return ncclSuccess;
    if (is_duplicate(comm)) {
      comm->last_error = "Duplicate GPU detected";
      *error = ncclInvalidUsage;
      return ncclSuccess;
    }
    comm->is_connected = true;
  }
  if (comm->has_given && !comm->given.empty()) {
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

#ifndef ST_LACKS_NAME
ncclResult_t ncclRecv(void* data, size_t count, ncclDataType_t type, int from, ncclComm_t comm, cudaStream_t stream) {
  return add(comm, from, data, count, type, stream, false);
}
#endif

}  // extern "C"
