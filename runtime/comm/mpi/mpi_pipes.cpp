#include "comm/mpi/mpi_pipes.h"

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>

#include "comm/plugin_side/plugin_refusal.h"

namespace st::plugin {
namespace {

constexpr int kTag = 1;  // in a communicator that nobody else uses

double seconds_of_mpi() { return MPI_Wtime(); }

std::string said(int error) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  if (MPI_Error_string(error, text.data(), &length) != MPI_SUCCESS) return "MPI error " + std::to_string(error);
  return {text.data(), static_cast<size_t>(length)};
}

void need(int error) {
  if (error != MPI_SUCCESS) throw Refusal(ST_RANK_FAILED, said(error));
}

const char* name_of_level(int level) {
  if (level == MPI_THREAD_SINGLE) return "MPI_THREAD_SINGLE";
  if (level == MPI_THREAD_FUNNELED) return "MPI_THREAD_FUNNELED";
  if (level == MPI_THREAD_SERIALIZED) return "MPI_THREAD_SERIALIZED";
  return "MPI_THREAD_MULTIPLE";
}

std::mutex in_use;  // keeps MPI_Finalize, at the end of the process, apart from MPI calls of a group's thread

bool is_finalized() {
  int is_over = 0;
  return MPI_Finalized(&is_over) != MPI_SUCCESS || is_over != 0;
}

void finalize() {
  const std::lock_guard lock(in_use);
  if (!is_finalized()) MPI_Finalize();
}

void need_going() {
  if (is_finalized()) throw Refusal(ST_WRONG_STATE, "MPI_Finalize was called while the communicator was in use; destroy it first");
}

/// Initialises MPI if nobody has. With a group of the host's, the host must have initialised it.
void need_mpi(bool has_group) {
  int is_over = 0, is_there = 0, level = MPI_THREAD_SINGLE;
  need(MPI_Finalized(&is_over));
  if (is_over != 0) throw Refusal(ST_WRONG_STATE, "MPI_Finalize was already called; create communicators before it");
  need(MPI_Initialized(&is_there));
  if (is_there == 0 && has_group)
    throw Refusal(ST_WRONG_STATE,
                  "MPI is not initialised, so the communicator does not belong to this MPI; call MPI_Init_thread first, and build "
                  "this plug-in against the program's own MPI");
  if (is_there == 0) {
    need(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level));
    std::atexit(finalize);
  }
  need(MPI_Query_thread(&level));
  if (level < MPI_THREAD_MULTIPLE)
    throw Refusal(ST_WRONG_STATE, std::string("MPI was initialised with ") + name_of_level(level) +
                                      ", but MPI_THREAD_MULTIPLE is needed: a thread of this library sends heartbeats while the host "
                                      "calls MPI itself; start MPI with MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided)");
}

}  // namespace

/// Our communicator: freed if every message has completed, otherwise leaked to MPI.
struct MpiPipes::Ours {
  MPI_Comm communicator = MPI_COMM_NULL;
  bool is_quiet = true;
};

struct MpiPipes::Frame {
  explicit Frame(int bytes) : memory(static_cast<size_t>(bytes)) {}

  std::vector<std::byte> memory;
  MPI_Request request = MPI_REQUEST_NULL;
  int filled = 0, taken = 0;  // bytes of a received message

  /// Whether the message is complete; true if there is none.
  bool is_done() {
    if (request == MPI_REQUEST_NULL) return true;
    int done = 0;
    MPI_Status status;
    need(MPI_Test(&request, &done, &status));
    if (done != 0) MPI_Get_count(&status, MPI_BYTE, &filled);
    return done != 0;
  }
};

struct MpiPipes::Pipe {
  static constexpr size_t kFrames = 4;
  std::vector<Frame> out, in;
  size_t next_out = 0, next_in = 0;
};

MpiPipes::MpiPipes(const st_plugin_start& start) {
  need_mpi(start.group != nullptr);
  const MPI_Comm theirs = start.group == nullptr ? MPI_COMM_WORLD : *static_cast<const MPI_Comm*>(start.group);
  if (theirs == MPI_COMM_NULL) throw Refusal(ST_INVALID_ARGUMENT, "the host's communicator is MPI_COMM_NULL");
  int has_two_sides = 0;
  need(MPI_Comm_test_inter(theirs, &has_two_sides));
  if (has_two_sides != 0)
    throw Refusal(ST_INVALID_ARGUMENT, "the host's communicator is an intercommunicator; merge its two groups with MPI_Intercomm_merge");
  ours_ = std::make_unique<Ours>();
  need(MPI_Comm_rank(theirs, &rank_));
  need(MPI_Comm_size(theirs, &size_));
  const bool agrees = (start.rank < 0 || start.rank == rank_) && (start.size < 0 || start.size == size_);
  if (!agrees)
    throw Refusal(ST_INVALID_ARGUMENT, "asked for rank " + std::to_string(start.rank) + " of " + std::to_string(start.size) +
                                           ", but this process is rank " + std::to_string(rank_) + " of the MPI communicator's " +
                                           std::to_string(size_) + "; the launcher's variables and MPI must agree");
  MPI_Request begun = MPI_REQUEST_NULL;
  // On the heap, and leaked if it does not complete: MPI may still write to it.
  auto made = std::make_unique<MPI_Comm>(MPI_COMM_NULL);
  need(MPI_Comm_idup(theirs, made.get(), &begun));
  const double end = seconds_of_mpi() + static_cast<double>(start.milliseconds) / 1e3;
  for (int done = 0; done == 0;) {
    need(MPI_Test(&begun, &done, MPI_STATUS_IGNORE));
    if (done != 0) break;
    const bool is_cancelled = start.is_cancelled(start.user) != 0;
    if (is_cancelled || seconds_of_mpi() > end) {
      (void)made.release();
      if (is_cancelled) throw Refusal(ST_CANCELLED, "cancelled while waiting for other ranks");
      throw Refusal(ST_TIMEOUT, "not all " + std::to_string(size_) + " ranks of the MPI communicator joined within " +
                                    std::to_string(start.milliseconds) +
                                    " ms; every rank must make this call, in the same order as its other calls on that communicator");
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  ours_->communicator = *made;
  need(MPI_Comm_set_errhandler(ours_->communicator, MPI_ERRORS_RETURN));

  // Up to the library's 64 KiB and its control frames, in one message.
  constexpr int kMost = (64 << 10) + (2 << 10), kLeast = 4 << 10, kAll = 64 << 20;
  frame_bytes_ = std::clamp(kAll / (2 * static_cast<int>(Pipe::kFrames) * size_), kLeast, kMost);
  for (int other = 0; other < size_; ++other) {
    pipes_.push_back(other == rank_ ? nullptr : std::make_unique<Pipe>());
    if (other == rank_) continue;
    Pipe& pipe = *pipes_.back();
    pipe.out.reserve(Pipe::kFrames);
    pipe.in.reserve(Pipe::kFrames);
    for (size_t i = 0; i < Pipe::kFrames; ++i) pipe.out.emplace_back(frame_bytes_);
    for (size_t i = 0; i < Pipe::kFrames; ++i) pipe.in.emplace_back(frame_bytes_);
  }
  try {
    for (int other = 0; other < size_; ++other)
      if (other != rank_)
        for (Frame& frame : pipes_[static_cast<size_t>(other)]->in) receive(other, frame);
  } catch (...) {
    let_go();  // MPI writes into the posted receive buffers
    throw;
  }
}

MpiPipes::~MpiPipes() { let_go(); }

void MpiPipes::let_go() noexcept {
  const std::lock_guard lock(in_use);
  int is_over = 0;
  MPI_Finalized(&is_over);
  const double end = seconds_of_mpi() + 1;
  const auto ends_in_time = [&](Frame& frame) {
    int done = frame.request == MPI_REQUEST_NULL ? 1 : 0;
    while (is_over == 0 && done == 0) {
      if (MPI_Test(&frame.request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || seconds_of_mpi() > end) break;
      if (done == 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    return done != 0;
  };
  for (auto& pipe : pipes_) {
    if (!pipe) continue;
    bool is_quiet = true;
    for (Frame& frame : pipe->out) is_quiet = ends_in_time(frame) && is_quiet;
    for (Frame& frame : pipe->in) {
      if (is_over == 0 && frame.request != MPI_REQUEST_NULL) MPI_Cancel(&frame.request);
      is_quiet = ends_in_time(frame) && is_quiet;
    }
    // A send to a dead rank never completes and cannot be cancelled: leak its memory to MPI.
    if (!is_quiet) (void)pipe.release();
    ours_->is_quiet = ours_->is_quiet && is_quiet;
  }
  if (is_over == 0 && ours_->is_quiet && ours_->communicator != MPI_COMM_NULL) MPI_Comm_free(&ours_->communicator);
}

void MpiPipes::receive(int from, Frame& frame) const {
  frame.filled = frame.taken = 0;
  need(MPI_Irecv(frame.memory.data(), frame_bytes_, MPI_BYTE, from, kTag, ours_->communicator, &frame.request));
}

int64_t MpiPipes::write(int to, std::span<const std::byte> bytes) {
  const std::lock_guard lock(in_use);
  need_going();
  Pipe& pipe = *pipes_.at(static_cast<size_t>(to));
  int64_t done = 0;
  while (!bytes.empty()) {
    Frame& frame = pipe.out[pipe.next_out];
    if (!frame.is_done()) break;
    const size_t piece = std::min(bytes.size(), frame.memory.size());
    std::memcpy(frame.memory.data(), bytes.data(), piece);
    need(MPI_Isend(frame.memory.data(), static_cast<int>(piece), MPI_BYTE, to, kTag, ours_->communicator, &frame.request));
    pipe.next_out = (pipe.next_out + 1) % Pipe::kFrames;
    bytes = bytes.subspan(piece);
    done += static_cast<int64_t>(piece);
  }
  return done;
}

int64_t MpiPipes::read(int from, std::span<std::byte> bytes) {
  const std::lock_guard lock(in_use);
  need_going();
  Pipe& pipe = *pipes_.at(static_cast<size_t>(from));
  size_t done = 0;
  while (done < bytes.size()) {
    Frame& frame = pipe.in[pipe.next_in];
    if (!frame.is_done()) break;
    const size_t piece = std::min(bytes.size() - done, static_cast<size_t>(frame.filled - frame.taken));
    std::memcpy(bytes.data() + done, frame.memory.data() + frame.taken, piece);
    frame.taken += static_cast<int>(piece);
    done += piece;
    if (frame.taken < frame.filled) break;
    receive(from, frame);
    pipe.next_in = (pipe.next_in + 1) % Pipe::kFrames;
  }
  return static_cast<int64_t>(done);
}

}  // namespace st::plugin
