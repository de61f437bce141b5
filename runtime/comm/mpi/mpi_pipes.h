// A rank's pipes to the others over MPI messages, in a communicator of our own.
#pragma once

#include <scaletrain/transport.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace st::plugin {

class MpiPipes {
 public:
  /// Duplicates the host's communicator (start.group is an MPI_Comm*), or MPI_COMM_WORLD; all of its ranks must call this. Initialises MPI
  /// if that has not happened, and then finalises it when the process ends. Throws Refusal: wrong_state if MPI is finalised or was not
  /// initialised with MPI_THREAD_MULTIPLE; invalid_argument if the communicator's rank or size differs from start's; timeout; cancelled.
  explicit MpiPipes(const st_plugin_start& start);
  ~MpiPipes();
  MpiPipes(const MpiPipes&) = delete;
  MpiPipes& operator=(const MpiPipes&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

  // As in st_transport_callbacks. Throws MPI's errors; most MPI versions report none when a rank dies.
  int64_t write(int to, std::span<const std::byte> bytes);
  int64_t read(int from, std::span<std::byte> bytes);

 private:
  struct Frame;
  struct Pipe;
  struct Ours;
  void receive(int from, Frame& frame) const;
  void let_go() noexcept;

  int rank_ = 0, size_ = 1;
  int frame_bytes_ = 0;
  std::unique_ptr<Ours> ours_;                // the communicator
  std::vector<std::unique_ptr<Pipe>> pipes_;  // null for this rank
};

}  // namespace st::plugin
